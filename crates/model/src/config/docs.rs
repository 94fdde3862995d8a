//! The reference of the settings, generated from their definitions: `docs/configuration.md` is this text,
//! which a test checks.

use std::fmt::Write as _;
use std::path::Path;

use super::{DEFINITIONS, Kind};

/// The text around the settings.
const FRAME: &str = include_str!("configuration.md");

/// `docs/configuration.md`.
fn reference() -> String {
    let mut settings = String::new();
    for definition in DEFINITIONS {
        let default = match &definition.kind {
            Kind::Text => "none".to_owned(),
            Kind::Folder { default } => {
                format!("`{default}` in Pi's agent folder, so `~/.pi/agent/{default}`")
            }
            Kind::Word { words } => format!("`{}`", words[0]),
            _ => format!("`{}`", definition.default(Path::new(""))),
        };
        let also: String =
            definition.names().skip(1).map(|name| format!(" Also read as `{name}`.")).collect();
        let _ = write!(
            settings,
            "### `{}`\n\n{}{also}\n\nTakes {}. Default: {default}. Environment: `{}`.\n\n",
            definition.key,
            definition.help,
            definition.expected().replace('"', "`"),
            definition.variable()
        );
    }
    FRAME.replace("{settings}", settings.trim_end())
}

/// `UPDATE_DOCS=1 cargo test --profile fast -p lcm-model docs` rewrites it.
#[test]
fn docs_configuration_md_matches_the_definitions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, reference(), "run UPDATE_DOCS=1 cargo test --profile fast -p lcm-model docs");
}
