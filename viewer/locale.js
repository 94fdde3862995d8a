/** The page formats in English. The charts' library takes the browser's language, and fails with one that is no language tag. */
Object.defineProperty(navigator, "language", { value: "en" });
