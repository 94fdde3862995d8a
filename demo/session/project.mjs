/**
 * The session's project in memory: files to read, write, edit and search.
 *
 * An edit that does not match throws, so the story can't contradict its own files.
 */
export class Project {
  /** @type {Map<string, string>} */
  #files;
  /** @type {Map<string, string>} as of the last commit */
  #committed;

  /**
   * @param {string} cwd its folder in the story
   * @param {Map<string, string>} files by path
   */
  constructor(cwd, files) {
    this.cwd = cwd;
    this.#files = new Map(files);
    this.#committed = new Map(files);
  }

  /** @param {string} path */
  has(path) {
    return this.#files.has(path);
  }

  /** @param {string} path */
  read(path) {
    const text = this.#files.get(path);
    if (text === undefined) throw new Error(`the story reads ${path}, which is not there`);
    return text;
  }

  /**
   * @param {string} path
   * @param {string} text
   */
  write(path, text) {
    this.#files.set(path, text);
  }

  /**
   * Replaces texts that each occur exactly once in the file.
   * @param {string} path
   * @param {{ oldText: string, newText: string }[]} edits
   * @returns {{ before: string, after: string }}
   */
  edit(path, edits) {
    const before = this.read(path);
    let after = before;
    for (const { oldText, newText } of edits) {
      if (after.split(oldText).length !== 2) throw new Error(`the story edits ${path}, but this stands there not exactly once: ${oldText}`);
      after = after.replace(oldText, () => newText);
    }
    this.#files.set(path, after);
    return { before, after };
  }

  /**
   * Paths below a folder, sorted.
   * @param {string} [folder]
   */
  paths(folder = "") {
    const prefix = folder === "" || folder === "." ? "" : `${folder.replace(/\/$/, "")}/`;
    return [...this.#files.keys()].filter((path) => path.startsWith(prefix) || path === folder).sort();
  }

  /**
   * What changed since the last commit, by path.
   * @returns {{ path: string, before: string, after: string }[]}
   */
  changes() {
    const changed = this.paths().filter((path) => this.#files.get(path) !== this.#committed.get(path));
    return changed.map((path) => ({ path, before: this.#committed.get(path) ?? "", after: this.read(path) }));
  }

  commit() {
    this.#committed = new Map(this.#files);
  }

  /** All files, to write the project to disk. */
  snapshot() {
    return new Map(this.#files);
  }

  /** @param {Map<string, string>} files */
  restore(files) {
    this.#files = new Map(files);
  }
}
