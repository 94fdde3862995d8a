//! The user's wishes for every summary: standing instructions, and prompts that replace the built-in ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{SettingSources, Settings};
use crate::files;

/// The heading, in a project's files, of the section about what summaries must keep.
const HEADING: &str = "compact instructions";
/// The files that may contain it, as Pi reads them.
const PROJECT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The folder for the user's own prompts, below Pi's agent folder.
const PROMPTS: &str = "lcm-prompts";
/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1024;
/// The most characters of the instructions, which are part of every prompt for a summary.
const MOST: usize = 4_000;

/// The built-in prompts by file name.
const SHIPPED: [(&str, &str); 8] = [
    ("system.md", include_str!("../../../compaction/src/prompts/system.md")),
    ("in_session.md", include_str!("../../../compaction/src/prompts/in_session.md")),
    ("leaf.md", include_str!("../../../compaction/src/prompts/leaf.md")),
    ("leaf_bullets.md", include_str!("../../../compaction/src/prompts/leaf_bullets.md")),
    ("condensed.md", include_str!("../../../compaction/src/prompts/condensed.md")),
    ("narrative.md", include_str!("../../../compaction/src/prompts/narrative.md")),
    ("condensed_bullets.md", include_str!("../../../compaction/src/prompts/condensed_bullets.md")),
    ("focus.md", include_str!("../../../compaction/src/prompts/focus.md")),
];

/// The user's wishes for every summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guidance {
    /// Instructions for every summary.
    pub instructions: Option<String>,
    /// The user's own prompts, by the names of the files they replace.
    prompts: BTreeMap<String, String>,
}

impl Guidance {
    /// Reads everything. Adds what can't be used to `problems`.
    pub(super) fn read(sources: &SettingSources, settings: &Settings, problems: &mut Vec<String>) -> Self {
        let of_project = sources.project_trusted.then(|| section(&sources.cwd)).flatten();
        let of_user = of_setting(&settings.compact_instructions, problems);
        let mut instructions = [of_user, of_project].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        if let Some((end, _)) = instructions.char_indices().nth(MOST) {
            problems.push(format!(
                "the instructions for summaries are longer than {MOST} characters; the rest is ignored"
            ));
            instructions.truncate(end);
        }
        let instructions = Some(instructions).filter(|text| !text.is_empty());
        Self { instructions, prompts: prompts(&sources.agent_dir.join(PROMPTS), problems) }
    }

    /// The user's prompt of this name, or the built-in one.
    pub fn prompt(&self, name: &str) -> &str {
        let own = self.prompts.get(name).map(String::as_str);
        own.or_else(|| SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text))
            .unwrap_or_default()
    }
}

/// The setting's text, or the contents of the file it names.
fn of_setting(value: &str, problems: &mut Vec<String>) -> Option<String> {
    let is_path = !value.contains('\n') && Path::new(value).is_absolute();
    let text = match is_path {
        true => read(Path::new(value)).or_else(|| {
            problems.push(format!(
                "compactInstructions names {value}, which is not a readable text file of at most 256 KB"
            ));
            None
        })?,
        false => value.to_owned(),
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The section from the project's files: in the folder itself, or the nearest one above it in the same
/// repository.
fn section(cwd: &Path) -> Option<String> {
    let is_root = |folder: &&Path| folder.join(".git").exists();
    let root = cwd.ancestors().find(is_root).unwrap_or(cwd);
    let folders = cwd.ancestors().take_while(|folder| folder.starts_with(root));
    let files = folders.flat_map(|folder| PROJECT_FILES.map(|name| folder.join(name)));
    files.filter_map(|file| section_of(&read(&file)?)).next()
}

/// Returns the text under the heading, up to the next one of the same or a higher level.
fn section_of(text: &str) -> Option<String> {
    let level = |line: &str| line.len() - line.trim_start_matches('#').len();
    let is_ours =
        |line: &&str| level(line) > 0 && line.trim_matches(['#', ' ']).eq_ignore_ascii_case(HEADING);
    let mut lines = text.lines();
    let depth = level(lines.find(is_ours)?);
    let mut is_code = false;
    let kept = lines.take_while(|line| {
        is_code ^= line.trim_start().starts_with("```");
        let is_heading = (1..=depth).contains(&level(line)) && line.trim_start_matches('#').starts_with(' ');
        is_code || !is_heading
    });
    let kept = kept.collect::<Vec<_>>().join("\n").trim().to_owned();
    Some(kept).filter(|text| !text.is_empty())
}

fn prompts(folder: &Path, problems: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut own = BTreeMap::new();
    for (name, shipped) in SHIPPED {
        let file: PathBuf = folder.join(name);
        if !file.exists() {
            continue;
        }
        let Some(text) = read(&file) else {
            problems.push(format!(
                "{} is not a readable text file of at most 256 KB; the built-in prompt is used",
                file.display()
            ));
            continue;
        };
        let missing: Vec<&str> = places(shipped).into_iter().filter(|place| !text.contains(place)).collect();
        match missing.is_empty() {
            true => drop(own.insert(name.to_owned(), text)),
            false => {
                let (file, missing) = (file.display(), missing.join(" and "));
                problems.push(format!("{file} lacks {missing}; the built-in prompt is used"));
            }
        }
    }
    own
}

/// The placeholders of a prompt.
fn places(prompt: &str) -> Vec<&str> {
    let starts = prompt.match_indices("{{").map(|(at, _)| at);
    let mut places: Vec<&str> =
        starts.filter_map(|at| Some(&prompt[at..at + prompt[at..].find("}}")? + 2])).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// The text of a regular file that is not too large.
fn read(file: &Path) -> Option<String> {
    files::read_text(file, LARGEST).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_section_ends_with_the_next_heading_of_its_level() {
        let text =
            "# Project\n\n## Compact Instructions\n\nKeep the ids.\n### More\n#no heading\n\n## Tests\nother";
        assert_eq!(section_of(text).as_deref(), Some("Keep the ids.\n### More\n#no heading"));
        assert_eq!(section_of("## compact instructions ##\n\n# Next"), None);
        assert_eq!(section_of("Compact Instructions\ntext"), None);
    }

    #[test]
    fn instructions_come_from_the_setting_and_from_a_trusted_project_and_prompts_from_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("project/.git")).unwrap();
        fs::create_dir_all(at("project/inner")).unwrap();
        fs::write(at("project/CLAUDE.md"), "## Compact Instructions\nKeep ticket numbers.").unwrap();
        fs::write(at("mine.md"), "Answer in French.\n").unwrap();
        fs::create_dir_all(at("agent/lcm-prompts")).unwrap();
        fs::write(at("agent/lcm-prompts/system.md"), "You summarize.").unwrap();
        fs::write(at("agent/lcm-prompts/leaf.md"), "{{words}} {{history}}").unwrap();
        let mut sources = SettingSources {
            agent_dir: at("agent"),
            cwd: at("project/inner"),
            project_trusted: true,
            ..SettingSources::default()
        };
        let settings = Settings {
            compact_instructions: at("mine.md").display().to_string(),
            ..Settings::defaults(&at("agent"))
        };
        let mut problems = Vec::new();
        let guidance = Guidance::read(&sources, &settings, &mut problems);
        assert_eq!(guidance.instructions.as_deref(), Some("Answer in French.\n\nKeep ticket numbers."));
        assert_eq!(guidance.prompt("system.md"), "You summarize.");
        assert_eq!(guidance.prompt("leaf.md"), Guidance::default().prompt("leaf.md"));
        let lacks = format!(
            "{} lacks {{{{before}}}} and {{{{fence}}}} and {{{{focus}}}}; the built-in prompt is used",
            at("agent/lcm-prompts/leaf.md").display()
        );
        assert_eq!(problems, [lacks]);

        (sources.project_trusted, sources.agent_dir) = (false, at("none"));
        let settings = Settings { compact_instructions: "Keep names.".into(), ..settings };
        let guidance = Guidance::read(&sources, &settings, &mut Vec::new());
        assert_eq!(guidance, Guidance { instructions: Some("Keep names.".into()), ..Guidance::default() });
    }
}
