//! File paths in prose and in commands, and whether a text has one.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Detail, DetailKind, has, is_among, is_letter};
use lcm_model::{Pattern, pattern};

/// File extensions, for names without a folder; file names without extension; products that look like files.
const ENDINGS: &str = " rs ts tsx js jsx mjs cjs py go java kt kts swift c h cc cpp hpp cs rb php sql sh bash ps1 lua zig ex exs \
    erl hs scala vue svelte css scss html md mdx rst txt json jsonl yaml yml toml ini cfg conf xml gradle proto tf csv parquet \
    ipynb lock clj edn dart onnx graphql prisma vhd sv v tex r adoc fs tfvars cu bat wgsl glsl xaml patch sol astro nix service \
    dump mod sum sbt plist po ml jl pl pm pem key sqlite db log png jpg svg xlsx pdf groovy hcl properties env erb ejs hbs less ";
const FILES: &str = " Dockerfile Containerfile Makefile Jenkinsfile Procfile Gemfile Rakefile Vagrantfile Caddyfile Justfile \
    CODEOWNERS .env .gitignore .dockerignore .npmrc .eslintrc .prettierrc .editorconfig ";
const PRODUCTS: &str = " node next vue nuxt three express ";
/// Folders without the user's own files.
const NOISE: &str = " node_modules .git __pycache__ .venv venv site-packages tmp temp dist target ";
/// Bytes of a path; files with one name.
const LONGEST: usize = 200;
const TWINS: usize = 50;

/// Several files in one, as `src/{a,b}.rs`.
static BRACES: Pattern = pattern!(r"([\w./@-]*)\{([\w.,/ -]+)\}([\w./-]*)");

/// What looks like a file's path in a text, without line numbers.
pub(super) fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| is_letter(c) || "_-./\\~@+".contains(c);
    text.split_inclusive(move |c: char| !is_part(c)).filter_map(move |piece| {
        let word = piece.trim_end_matches(|c: char| !is_part(c)).trim_end_matches(['.', '/', '-']);
        let name = end_of(word, 1);
        if is_among(FILES, name) || name.starts_with(".env.") {
            return Some(word);
        }
        let (stem, ending) = name.rsplit_once('.')?;
        let is_file = if let Some((host, _)) = word.split_once('/') {
            let is_ending = ending.len() <= 7 && ending.starts_with(|c: char| c.is_ascii_lowercase());
            let is_host = host.len() > 2 && host.contains('.');
            is_ending && !stem.is_empty() && !is_host && !word.starts_with("//")
        } else {
            let is_product = stem.starts_with(char::is_uppercase) || is_among(PRODUCTS, stem);
            stem.contains(char::is_alphabetic)
                && stem.len() > 1
                && is_among(ENDINGS, ending)
                && !(ending == "js" && is_product)
                && !stem.contains('@')
                && !piece.ends_with('(')
        };
        is_file.then_some(word)
    })
}

/// Whether the file is generated, temporary or oddly named.
pub(super) fn is_noise(path: &str) -> bool {
    let is_hash = |part: &str| {
        part.len() > 7
            && part.chars().all(|c| c.is_ascii_hexdigit())
            && part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic())
    };
    path.len() > LONGEST
        || path.contains(char::is_control)
        || path.split('/').any(|part| is_among(NOISE, part))
        || path.split(['/', '.', '-', '_']).any(is_hash)
}

/// Merges a file's several spellings, which have the same ending, and shortens each to what tells it from the
/// others.
pub(super) fn one_each(details: impl Iterator<Item = Detail>) -> Vec<Detail> {
    let (mut files, others): (Vec<_>, Vec<_>) =
        details.partition(|one| matches!(one.kind, DetailKind::Path(_)));
    files.sort_by(|a, b| (b.key.len(), &a.key).cmp(&(a.key.len(), &b.key)));
    let mut by_name: HashMap<String, Vec<Detail>> = HashMap::new();
    for file in files {
        let same = by_name.entry(end_of(&file.key, 1).to_owned()).or_default();
        match same.iter_mut().take(TWINS).find(|longer| ends_at(&longer.key, &file.key)) {
            Some(longer) => longer.say_again(file.weight, file.seen),
            None => same.push(file),
        }
    }
    let mut all = others;
    for files in by_name.into_values() {
        let has_twin = files.len() > 1;
        all.extend(files.into_iter().map(|file| {
            let text = end_of(&file.text, 1 + usize::from(has_twin)).to_owned();
            Detail { kind: DetailKind::Path(has_twin), text, ..file }
        }));
    }
    all
}

/// `summary` and the paths that it abbreviates.
pub(super) fn unfolded(summary: &str) -> String {
    let mut text = summary.to_owned();
    for found in BRACES.captures(summary) {
        for name in found[2].split(',') {
            let _ = write!(text, "\n{}{}{}", &found[1], name.trim(), &found[3]);
        }
    }
    text.replace("::", "/")
}

/// Whether `lower` has the file: by its name, with its folder if another has the same name; by folder and name
/// without extension, as a module; by name alone if that looks like no word.
pub(super) fn is_in(lower: &str, path: &str, has_twin: bool) -> bool {
    let stem = |path| str::rsplit_once(path, '.').map_or(path, |(stem, _)| stem);
    let (name, module) = (stem(end_of(path, 1)), stem(end_of(path, 2)));
    let is_own = !has_twin && name.contains(['-', '.']);
    has(lower, end_of(path, 1 + usize::from(has_twin)), "-.")
        || is_own && has(lower, name, "")
        || !has_twin && has(lower, &format!("`{name}`"), "")
        || module.contains('/')
            && [module, &module.replace('/', ".")].iter().any(|name| has(lower, name, "-."))
}

/// The last `parts` components of a path.
fn end_of(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

/// Whether `end` is the whole path or its last components.
pub(super) fn ends_at(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end.to_lowercase().trim_start_matches("./"));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
