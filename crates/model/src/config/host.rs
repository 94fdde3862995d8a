//! Reads from Pi's own files what a running Pi would know: whether a project is trusted, and where its
//! sessions are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::sources::json_in;
use super::{Origin, SettingSources, at_home};

/// The variable for the folder of sessions.
const SESSIONS: &str = "PI_CODING_AGENT_SESSION_DIR";

/// Whether the user trusts a project, as recorded by Pi. The record of the nearest folder counts.
pub fn is_trusted(agent_dir: &Path, cwd: &Path) -> bool {
    let noted = json(&agent_dir.join("trust.json"));
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let nearest = cwd.ancestors().find_map(|folder| noted[folder.to_string_lossy().as_ref()].as_bool());
    nearest.unwrap_or_else(|| json(&agent_dir.join("settings.json"))["defaultProjectTrust"] == "always")
}

/// The folder of a project's sessions, and the folder that contains those of all projects.
pub fn session_folders(
    sources: &SettingSources,
    environment: &HashMap<String, String>,
) -> (PathBuf, PathBuf) {
    let all = sources.agent_dir.join("sessions");
    let at_home = |path: &str| at_home(path, &sources.cwd).unwrap_or_else(|| sources.cwd.join(path));
    let set = environment.get(SESSIONS).filter(|set| !set.is_empty()).map(|set| at_home(set));
    let in_file = |origin, is_read: bool| {
        let file = sources.file(origin).filter(|_| is_read)?;
        json(&file)["sessionDir"].as_str().map(at_home)
    };
    let own = set
        .or_else(|| in_file(Origin::Project, sources.project_trusted))
        .or_else(|| in_file(Origin::Global, true))
        .unwrap_or_else(|| all.join(session_folder(&sources.cwd)));
    (own, all)
}

/// Pi's name for the folder of the sessions of `cwd`.
pub fn session_folder(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let cwd = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", cwd.replace(['/', '\\', ':'], "-"))
}

fn json(path: &Path) -> Value {
    json_in(path).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn trust_follows_the_nearest_folder_and_sessions_are_in_pis_folder() {
        let dir = tempfile::tempdir().unwrap();
        let agent = dir.path().canonicalize().unwrap();
        let at = |name: &str| agent.join(name);
        fs::create_dir_all(at("a/b/c")).unwrap();
        assert!(!is_trusted(&agent, &at("a/b")));
        let noted = json!({at("a").to_str().unwrap(): true, at("a/b").to_str().unwrap(): false, at("a/b/c").to_str().unwrap(): null});
        fs::write(at("trust.json"), noted.to_string()).unwrap();
        let trusted = ["a", "a/b", "a/b/c", "none"].map(|name| is_trusted(&agent, &at(name)));
        assert_eq!(trusted, [true, false, false, false]);
        fs::write(at("settings.json"), r#"{"defaultProjectTrust": "always"}"#).unwrap();
        assert!(is_trusted(&agent, &at("none")));

        let cwd = PathBuf::from("/home/you/a project");
        let sources = SettingSources { agent_dir: agent.clone(), cwd, ..SettingSources::default() };
        let own = |set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            session_folders(&sources, &set).0
        };
        assert_eq!(own(&[]), at("sessions/--home-you-a project--"));
        fs::write(at("settings.json"), r#"{"sessionDir": "theirs"}"#).unwrap();
        assert_eq!(own(&[]), PathBuf::from("/home/you/a project/theirs"));
        assert_eq!(own(&[(SESSIONS, "/elsewhere")]), PathBuf::from("/elsewhere"));
    }
}
