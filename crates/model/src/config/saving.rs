//! Lists the effective settings, and changes one in Pi's own files.
//!
//! A file is replaced completely or not at all, under Pi's own lock; its other values stay.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::edit::edited;
use super::sources::{Gathered, gather, is_of_project, meant};
use super::{DEFINITIONS, Definition, Kind, Origin, SETTINGS_FILE, SettingSources, value};
use crate::error::{Error, Result};
use crate::files::{self, temporary::Temporary};
use crate::text::one_line;

/// How long another program may hold a file, as a number of pauses.
const RESTS: usize = 50;
const REST: Duration = Duration::from_millis(20);
/// A lock older than this was left behind, by Pi's own rule.
const STALE: Duration = Duration::from_secs(10);

/// A setting with its effective value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    pub name: &'static str,
    pub help: &'static str,
    /// The accepted values, in words.
    pub takes: String,
    /// The type of its values.
    pub kind: &'static str,
    pub default: Value,
    pub value: Value,
    /// Where it comes from.
    pub source: Origin,
    /// The environment variable that sets it.
    pub variable: String,
}

/// A change of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The file with it.
    pub file: PathBuf,
    /// The value there; `None` if it was removed.
    pub saved: Option<Value>,
    /// Whether it differs from what was there.
    pub is_new: bool,
    /// The setting's new state: a stronger source may have another value.
    pub setting: Setting,
}

/// Every setting with its effective value, in the order of the documentation.
pub fn settings(sources: &SettingSources) -> Vec<Setting> {
    let Gathered { values, origins, .. } = gather(sources);
    let setting = |definition: &Definition| Setting {
        name: definition.key,
        help: definition.help,
        takes: definition.expected(),
        kind: match definition.kind {
            Kind::Switch { .. } => "switch",
            Kind::Number { .. } => "number",
            Kind::Text => "text",
            Kind::Folder { .. } => "folder",
            Kind::Names { .. } => "names",
            Kind::Word { .. } => "word",
        },
        default: definition.default(&sources.agent_dir),
        value: values[definition.key].clone(),
        source: origins.get(definition.key).copied().unwrap_or_default(),
        variable: definition.variable(),
    };
    DEFINITIONS.iter().map(setting).collect()
}

/// The setting of this name or spelling, with its effective value.
///
/// # Errors
/// When there is none; suggests the likely one.
pub fn setting(sources: &SettingSources, name: &str) -> Result<Setting> {
    let definition = named(name)?;
    let current = settings(sources).into_iter().find(|setting| setting.name == definition.key);
    current.ok_or_else(|| Error::invalid("the setting is gone"))
}

fn named(name: &str) -> Result<&'static Definition> {
    let found = DEFINITIONS.iter().find(|definition| definition.names().any(|known| known == name));
    found.ok_or_else(|| {
        let meant = match meant(name, Origin::Default) {
            none if none.is_empty() => ": /lcm settings lists all".to_owned(),
            meant => meant,
        };
        Error::invalid(format!("there is no setting {}{meant}", one_line(name, 40)))
    })
}

/// Sets `name` to the value of `text` in the global or the project's file; without a text, removes it there.
///
/// # Errors
/// For an unknown name, an invalid value, one that a project can't set, an untrusted project, or a file that is not JSON
/// or can't be written. Nothing is changed then.
pub fn change(sources: &SettingSources, name: &str, text: Option<&str>, into: Origin) -> Result<Changed> {
    let definition = named(name)?;
    if into == Origin::Project && !sources.project_trusted {
        return Err(Error::invalid(
            "this project is not trusted in Pi, so its settings are ignored: start pi there and trust it, or use --global",
        ));
    }
    let file = sources.file(into).ok_or_else(|| Error::invalid("settings are saved only in files"))?;
    let saved = text.map(|text| read(definition, text, sources)).transpose()?;
    if into == Origin::Project && saved.as_ref().is_some_and(|value| !is_of_project(definition, value)) {
        return Err(Error::invalid(format!(
            "a project can't set {} for its users: use --global; nothing was changed",
            definition.key
        )));
    }
    if into == Origin::Global
        && definition.key == "syncProject"
        && saved.as_ref().is_some_and(|name| name != "")
    {
        return Err(Error::invalid(
            "syncProject names one project: use --project, or /lcm sync TARGET --name NAME; nothing was changed",
        ));
    }
    let is_new = write(&file, &definition.names().collect::<Vec<_>>(), saved.as_ref())?;
    Ok(Changed { file, saved, is_new, setting: setting(sources, definition.key)? })
}

/// A text's value, as written to a file.
fn read(definition: &Definition, text: &str, sources: &SettingSources) -> Result<Value> {
    let value = value::from_text(definition, text);
    let accepted = value::accepted(definition, &value, &sources.cwd).ok_or_else(|| {
        let (takes, given) =
            (definition.expected(), if text.is_empty() { "nothing".into() } else { one_line(text, 40) });
        Error::invalid(format!("{} takes {takes}, not {given}; nothing was changed", definition.key))
    })?;
    // A path is kept as it was given.
    Ok(if matches!(definition.kind, Kind::Names { .. }) { accepted } else { value })
}

/// Returns whether that changes the file.
fn write(path: &Path, names: &[&str], value: Option<&Value>) -> Result<bool> {
    let failed =
        |error: std::io::Error| Error::invalid(format!("{} can't be written: {error}", path.display()));
    // Follow links: some users keep their settings in a repository.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let lock = Lock::take(&real)?;
    let before = match files::read_text(&real, SETTINGS_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let after = edited(&before, names, value).map_err(|why| {
        Error::invalid(format!("{} is {why}: fix it first; nothing was changed", path.display()))
    })?;
    if after == before {
        return Ok(false);
    }
    replace(&real, &after, &lock).map_err(failed).map(|()| true)
}

/// Replaces a file's text and keeps its permissions. A new file gets those that Pi would give it.
fn replace(path: &Path, text: &str, lock: &Lock) -> std::io::Result<()> {
    let (temporary, mut file) = Temporary::beside(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    match fs::metadata(path) {
        Ok(old) => file.set_permissions(old.permissions())?,
        #[cfg(unix)]
        Err(_) => {
            use std::os::unix::fs::PermissionsExt as _;
            // The lock was created with the user's defaults.
            let mode = fs::metadata(&lock.0)?.permissions().mode() & 0o666;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        #[cfg(not(unix))]
        Err(_) => {}
    }
    drop(file);
    temporary.become_file(path.file_name().unwrap_or_default(), true)
}

/// The lock that Pi takes on its settings: a folder next to the file.
struct Lock(PathBuf);

impl Lock {
    fn take(file: &Path) -> Result<Self> {
        let path = file.with_added_extension("lock");
        for _ in 0..RESTS {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Error::invalid(format!("{} can't be written: {error}", file.display())));
                }
            }
            let age = fs::metadata(&path).and_then(|lock| lock.modified()).map(|time| time.elapsed());
            let is_stale = matches!(age, Ok(Ok(age)) if age > STALE);
            if !(is_stale && fs::remove_dir(&path).is_ok()) {
                std::thread::sleep(REST);
            }
        }
        Err(Error::invalid(format!("{} is in use by another program: try again", file.display())))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    struct World(tempfile::TempDir, SettingSources);

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (agent_dir, cwd) = (dir.path().join("agent"), dir.path().join("project"));
            fs::create_dir_all(&agent_dir).unwrap();
            fs::create_dir_all(&cwd).unwrap();
            let sources =
                SettingSources { agent_dir, cwd, project_trusted: true, ..SettingSources::default() };
            Self(dir, sources)
        }

        fn global(&self) -> PathBuf {
            self.1.agent_dir.join("settings.json")
        }

        fn refusal(&self, name: &str, text: &str, into: Origin) -> String {
            change(&self.1, name, Some(text), into).unwrap_err().to_string()
        }
    }

    #[test]
    fn a_value_is_saved_in_the_chosen_file_and_takes_effect() {
        let world = World::new();
        fs::write(world.global(), "{\"theme\": \"dark\"}").unwrap();
        let Changed { file, saved, setting, .. } =
            change(&world.1, "maxDepth", Some("3"), Origin::Global).unwrap();
        assert_eq!((file, saved, setting.value), (world.global(), Some(3.into()), 3.into()));
        assert_eq!(setting.source, Origin::Global);
        let text = fs::read_to_string(world.global()).unwrap();
        assert_eq!(text, "{\n  \"theme\": \"dark\",\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}\n");

        let models = Some("a/b, c/d");
        let Changed { file, setting, .. } =
            change(&world.1, "compactionModels", models, Origin::Project).unwrap();
        assert_eq!(file, world.1.cwd.join(".pi/settings.json"));
        assert_eq!((setting.value, setting.source), (serde_json::json!(["a/b", "c/d"]), Origin::Project));

        for empty in ["[]", ""] {
            let Changed { setting, .. } =
                change(&world.1, "compactionModels", Some(empty), Origin::Project).unwrap();
            assert_eq!((setting.value, setting.source), (serde_json::json!([]), Origin::Project));
        }

        change(&world.1, "context", Some("full"), Origin::Project).unwrap();
        let Changed { saved, setting, .. } =
            change(&world.1, "context", Some("lean"), Origin::Global).unwrap();
        assert_eq!(
            (saved, setting.value, setting.source),
            (Some("lean".into()), "full".into(), Origin::Project)
        );

        change(&world.1, "context", None, Origin::Global).unwrap();
        for is_there in [true, false] {
            let Changed { setting, is_new, .. } = change(&world.1, "maxDepth", None, Origin::Global).unwrap();
            assert_eq!((setting.value, setting.source, is_new), (5.into(), Origin::Default, is_there));
        }
        assert_eq!(fs::read_dir(&world.1.agent_dir).unwrap().count(), 1, "no other file is left");
    }

    #[test]
    fn invalid_values_are_refused_with_a_sentence_and_change_nothing() {
        let world = World::new();
        assert_eq!(
            world.refusal("maxDepth", "many", Origin::Global),
            "maxDepth takes a whole number from 1 to 20, not many; nothing was changed"
        );
        assert_eq!(
            world.refusal("maxDept", "1", Origin::Global),
            "there is no setting maxDept: did you mean maxDepth?"
        );
        assert_eq!(
            world.refusal("bogus", "1", Origin::Global),
            "there is no setting bogus: /lcm settings lists all"
        );
        assert!(!world.global().exists());
        fs::write(world.global(), "{\"a\": ").unwrap();
        let refusal = world.refusal("maxDepth", "3", Origin::Global);
        assert!(
            refusal.contains("settings.json is no JSON (") && refusal.ends_with("nothing was changed"),
            "{refusal}"
        );
        assert_eq!(fs::read_to_string(world.global()).unwrap(), "{\"a\": ");
        for (name, value) in
            [("syncTarget", "/mnt/share"), ("syncRedact", "false"), ("syncRecipients", "none")]
        {
            let refusal = world.refusal(name, value, Origin::Project);
            assert!(refusal.starts_with(&format!("a project can't set {name} ")), "{refusal}");
        }
        let refusal = world.refusal("syncProject", "shop", Origin::Global);
        assert_eq!(
            refusal,
            "syncProject names one project: use --project, or /lcm sync TARGET --name NAME; nothing was changed"
        );
        let mut sources = world.1.clone();
        sources.project_trusted = false;
        let refusal = change(&sources, "maxDepth", Some("3"), Origin::Project).unwrap_err().to_string();
        assert!(refusal.starts_with("this project is not trusted in Pi"), "{refusal}");
        assert!(!world.1.cwd.join(".pi").exists());
    }

    #[test]
    fn saving_waits_for_other_writers_and_keeps_links_and_permissions() {
        let world = World::new();
        let lock = world.global().with_added_extension("lock");
        fs::create_dir(&lock).unwrap();
        assert!(
            world
                .refusal("maxDepth", "3", Origin::Global)
                .ends_with("is in use by another program: try again")
        );
        fs::remove_dir(&lock).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
            let real = world.0.path().join("mine.json");
            fs::write(&real, "{}").unwrap();
            change(&world.1, "status", Some("off"), Origin::Project).unwrap();
            assert_eq!(mode(&world.1.cwd.join(".pi/settings.json")), mode(&real), "of a new file");
            fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
            std::os::unix::fs::symlink(&real, world.global()).unwrap();
            change(&world.1, "status", Some("off"), Origin::Global).unwrap();
            assert!(fs::symlink_metadata(world.global()).unwrap().is_symlink());
            assert!(fs::read_to_string(&real).unwrap().contains("\"status\": false"));
            assert_eq!(mode(&real) & 0o777, 0o640);
        }
    }

    #[test]
    fn a_lock_that_was_left_behind_is_removed() {
        let world = World::new();
        let path = world.global().with_added_extension("lock");
        fs::create_dir(&path).unwrap();
        fs::File::open(&path).unwrap().set_modified(SystemTime::now() - 2 * STALE).unwrap();
        change(&world.1, "maxDepth", Some("3"), Origin::Global).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn every_setting_is_listed_with_its_default_and_source() {
        let mut world = World::new();
        world.1.environment.insert("LCM_MAX_DEPTH".into(), "4".into());
        let all = settings(&world.1);
        assert_eq!(all.len(), DEFINITIONS.len());
        for setting in &all {
            let changed = setting.name == "maxDepth";
            assert_eq!(setting.value == setting.default, !changed, "{}", setting.name);
            assert_eq!(setting.source == Origin::Environment, changed, "{}", setting.name);
        }
    }
}
