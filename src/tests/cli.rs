//! `pi-lcm`: what its arguments mean, what it finds, and that it creates nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::Session;
use crate::cli::{Cli, CliReply};
use lcm_model::text::is_unsafe;
use lcm_store::real_path;

/// A machine with a project and Pi's folder.
pub struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("project/src")).unwrap();
        Self { dir }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(real_path(self.dir.path())).join(name)
    }

    /// Writes a session file, of a project on another machine, to any path.
    pub fn session(&self, name: &str, id: &str, session: &Session) -> PathBuf {
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": "/nowhere"});
        let lines: Vec<String> =
            std::iter::once(&header).chain(&session.entries).map(Value::to_string).collect();
        let path = self.at(name);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    pub async fn say_in(&self, folder: &Path, columns: Option<usize>, arguments: &[&str]) -> CliReply {
        let request = json!({
            "arguments": arguments, "cwd": folder, "agentDir": self.at("agent"), "environment": {}, "columns": columns
        });
        Cli::default().run(&request.to_string()).await.unwrap()
    }

    async fn say(&self, arguments: &[&str]) -> CliReply {
        self.say_in(&self.at("project"), None, arguments).await
    }

    /// The answer as JSON, and the exit code.
    async fn ask(&self, arguments: &[&str]) -> (Value, i32) {
        let reply = self.say(&[&["--json"], arguments].concat()).await;
        (serde_json::from_str(&reply.output).unwrap(), reply.code)
    }

    /// All files with their bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut folders) = (BTreeMap::new(), vec![self.at("")]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        found
    }
}

fn failed(message: &str) -> CliReply {
    CliReply { output: String::new(), complaint: format!("pi-lcm: {message}"), code: 2 }
}

#[tokio::test]
async fn asking_creates_nothing_and_names_a_remedy() {
    let machine = Machine::new();
    let (project, db_dir) = (machine.at("project"), machine.at("agent/lcm"));
    for command in ["stats", "sessions", "tree", "doctor", "export", "backup"] {
        let reply = machine.say(&[command]).await;
        assert_eq!(reply.code, 2, "{command}");
        let begins = format!("pi-lcm: {} has no history in {}; ", project.display(), db_dir.display());
        assert!(reply.complaint.starts_with(&begins), "{}", reply.complaint);
    }
    let nowhere = machine.at("nowhere");
    assert_eq!(
        machine.say(&["stats", "--project", nowhere.to_str().unwrap()]).await,
        failed(&format!("there is no folder {}: choose another with --project", nowhere.display()))
    );
    assert_eq!(machine.say(&["doctor", "--fix"]).await.code, 2);
    assert!(machine.files().is_empty(), "{:?}", machine.files().keys());

    let file = machine.session("out.jsonl", "one", &Session::new().chat(2, 5));
    let (imported, code) = machine.ask(&["import", file.to_str().unwrap()]).await;
    assert_eq!((&imported["newMessages"], code), (&json!(4), 0));
    let damaged = file.with_file_name("damaged.jsonl");
    fs::write(&damaged, fs::read_to_string(&file).unwrap() + "{\"type\":\n").unwrap();
    let (imported, code) = machine.ask(&["import", damaged.to_str().unwrap()]).await;
    assert_eq!(
        (&imported["brokenLines"], &imported["brokenIn"][0]["name"], code),
        (&json!(1), &json!("damaged.jsonl"), 2)
    );
    // Pi or another agent may still be writing the last line.
    let growing = file.with_file_name("growing.jsonl");
    fs::write(&growing, fs::read_to_string(&file).unwrap() + "{\"type\":\"mess").unwrap();
    let (imported, code) = machine.ask(&["import", growing.to_str().unwrap()]).await;
    assert_eq!((&imported["unfinishedLines"], &imported["brokenLines"], code), (&json!(1), &json!(0), 0));
    let below = machine.say_in(&machine.at("project/src"), None, &["stats"]).await;
    assert!(below.complaint.ends_with(&format!("--project {}", project.display())), "{}", below.complaint);
    let before = machine.files();
    for arguments in [&["stats"][..], &["sessions"], &["grep", "question"], &["tree"], &["doctor"]] {
        assert_eq!(machine.say(arguments).await.code, 0, "{arguments:?}");
    }
    assert!(machine.files() == before, "asking changed {:?}", machine.files().keys());
}

#[cfg(unix)]
#[tokio::test]
async fn a_project_is_the_same_however_its_folder_is_written() {
    let machine = Machine::new();
    let project = machine.at("project");
    let name = project.to_str().unwrap().replace('/', "-");
    fs::create_dir_all(machine.at(&format!("agent/sessions/-{name}--"))).unwrap();
    let file =
        machine.session(&format!("agent/sessions/-{name}--/1.jsonl"), "one", &Session::new().chat(1, 5));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("/nowhere", project.to_str().unwrap())).unwrap();
    std::os::unix::fs::symlink(&project, machine.at("link")).unwrap();
    let src = machine.at("project/src");
    for written in ["..", "../", "../../project", "../../link"] {
        let reply = machine.say_in(&src, None, &["import", "--project", written]).await;
        assert_eq!((reply.code, reply.output.split(':').next()), (0, Some("1 session")), "{written}");
    }
    let last = r#"{"type":"label","id":"new","parentId":null,"targetId":"e1","label":"x"}"#;
    fs::write(&file, fs::read_to_string(&file).unwrap() + last + "\n").unwrap();
    let checked = machine.say(&["doctor"]).await.output;
    assert!(checked.contains("1.jsonl has 1 more entry (pi-lcm import adds them)"), "{checked}");
    fs::rename(&project, machine.at("moved")).unwrap();
    let gone = machine.say_in(&machine.at(""), None, &["sessions", "--project", "./project/"]).await;
    assert_eq!(gone.code, 0, "{}", gone.complaint);
}

#[tokio::test]
async fn a_search_covers_all_sessions_or_the_named_one() {
    let machine = Machine::new();
    let one = Session::new().user("a red fox").assistant("where is the fox?");
    let two = Session::new().user("a blue fox --regex").assistant("there");
    let files = [machine.session("1.jsonl", "one-1", &one), machine.session("2.jsonl", "two-2", &two)];
    for file in &files {
        assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    }
    let found = async |arguments: &[&str]| {
        let (answer, code) = machine.ask(&[&["grep"], arguments].concat()).await;
        (answer["hits"].as_array().map_or(0, Vec::len), code)
    };
    assert_eq!(found(&["fox"]).await, (3, 0));
    assert_eq!(found(&["fox", "--session", "one"]).await, (2, 0));
    let sessions = machine.ask(&["grep", "fox"]).await.0["hits"].clone();
    assert!(sessions.as_array().unwrap().iter().all(|hit| hit["session"]["id"].is_string()), "{sessions}");
    assert_eq!(found(&["fox", "--session=two-2"]).await, (1, 0));
    assert_eq!(found(&["fox", "--role", "user"]).await, (2, 0));
    assert_eq!(found(&["fox", "--agent", "pi"]).await, (3, 0));
    assert_eq!(found(&["fox", "--agent", "pi", "--session", "one"]).await, (2, 0));
    assert_eq!(found(&["-n1", "fox"]).await, (1, 0));
    assert_eq!(found(&["-ei", "RED|BLUE"]).await, (2, 0));
    assert_eq!(found(&["-e", "RED|BLUE"]).await, (0, 1));
    assert_eq!(found(&["--", "--regex"]).await, (1, 0));
    assert_eq!(found(&["fox", "--before", "2020-01-01"]).await, (0, 1));

    // As in Pi.
    assert_eq!(machine.say(&["search", "wolf"]).await.code, 1);
    let nothing = machine.say(&["grep", "wolf"]).await;
    let said = CliReply {
        output: String::new(),
        complaint: "Nothing found for wolf, thinking aside.".into(),
        code: 1,
    };
    assert_eq!(nothing, said);
    let plain = machine.say(&["grep", "red"]).await.output;
    assert!(plain.starts_with("m-") && plain.ends_with("\n  a red fox"), "{plain}");
    let seen = machine.say_in(&machine.at("project"), Some(80), &["grep", "red"]).await.output;
    assert!(
        seen.contains("a \u{1b}[1;31mred\u{1b}[0m fox\n\nTo read one in full: pi-lcm show ID."),
        "{seen:?}"
    );

    let (sessions, _) = machine.ask(&["sessions"]).await;
    let listed: Vec<_> =
        sessions["sessions"].as_array().unwrap().iter().map(|one| (&one["id"], &one["about"])).collect();
    assert_eq!(listed[1], (&json!("one-1"), &json!("a red fox")));
}

#[tokio::test]
async fn an_id_of_any_length_is_listed_cut_and_kept_whole() {
    let machine = Machine::new();
    let long = "x".repeat(70_000);
    for (file, id) in [("1.jsonl", "one-1"), ("2.jsonl", &long)] {
        let file = machine.session(file, id, &Session::new().user("a red fox"));
        assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    }
    let listed = machine.say(&["sessions"]).await.output;
    let lines: Vec<&str> = listed.lines().filter(|line| line.contains("  1 message, ")).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.chars().count() < 200), "{listed}");
    assert!(listed.contains("xxx… ") && listed.contains("one-1  "), "{listed}");
    let (sessions, _) = machine.ask(&["sessions"]).await;
    assert!(sessions["sessions"].as_array().unwrap().iter().any(|one| one["id"] == long));
}

#[tokio::test]
async fn examples_have_only_options_that_the_shell_has() {
    let machine = Machine::new();
    let all = [
        "stats", "sessions", "grep", "show", "tree", "export", "doctor", "simulate", "import", "backup",
        "sync",
    ];
    for command in all {
        let help = machine.say(&[command, "--help"]).await.output;
        let (options, examples) = help.split_once("\nExamples:\n").unwrap();
        let of_example = examples.lines().filter(|line| line.starts_with("  pi-lcm "));
        for option in of_example.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")) {
            assert!(options.contains(option), "{command}: {option}");
        }
    }
}

#[tokio::test]
async fn a_wrong_call_is_explained_in_one_sentence() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(1, 5));
    assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    for (arguments, message) in [
        (
            &["stat"][..],
            "unrecognized subcommand 'stat'; tip: some similar subcommands exist: 'simulate', 'stats' (see --help)",
        ),
        (&["nonsense"], "unrecognized subcommand 'nonsense' (see --help)"),
        (
            &["grep", "--rol", "x"],
            "unexpected argument '--rol' found; tip: a similar argument exists: '--role' (see --help)",
        ),
        (
            &["grep"],
            "the following required arguments were not provided: <WORDS>...; -e . matches every message with text (see --help)",
        ),
        (
            &["grep", "x", "--role", "user", "--tool", "bash"],
            "leave out role user or tool bash: only toolResult messages come from a tool",
        ),
        (&["grep", "x", "--limit", "0"], "--limit takes a whole number of at least 1, not 0"),
        (&["grep", "x", "--after", "soon"], "--after `soon` is not a time: "),
        (&["grep", "x", "--after", "1d", "--before", "3d"], "--after is later than --before: "),
        (
            &["grep", "x", "--sort", "up"],
            "invalid value 'up' for '--sort <ORDER>' [possible values: relevance, recent, oldest] ",
        ),
        (&["grep", ""], "grep needs words to search for"),
        (&["show"], "the following required arguments were not provided: <ID> (see --help)"),
        (
            &["show", "m-ffffffffff"],
            "there is no message m-ffffffffff in this project: pi-lcm grep and pi-lcm tree show ids",
        ),
        (&["stats", "--session", "zwei"], "there is no session `zwei` in this project"),
        (
            &["stats", "--project"],
            "a value is required for '--project <FOLDER>' but none was supplied (see --help",
        ),
        (
            &["stats", "--project="],
            "a value is required for '--project <FOLDER>' but none was supplied (see --help",
        ),
        (
            &["stats", "--json=yes"],
            "unexpected value 'yes' for '--json' found; no more were expected (see --help",
        ),
        (
            &["--project", "a", "stats", "--db", "b"],
            "--project and --db exclude each other: leave one of them out",
        ),
        (&["stats", "now"], "unexpected argument 'now' found (see --help)"),
        (
            &["stats", "--color", "blue"],
            "invalid value 'blue' for '--color <WHEN>' [possible values: always, never, auto] ",
        ),
        (&["import", "--db", "x"], "--db is read-only: use --project with the project's folder instead"),
        (&["backup", "--session", "one"], "backup takes no --session: it is about all sessions"),
        (
            &["--session", "last", "export", "--from", "codex"],
            "export --from takes no --session: it is about all sessions",
        ),
        (&["completions"], "the following required arguments were not provided: <bash|zsh|fish> (see --help"),
        (
            &["purge", "m-ffffffffff"],
            "there is no pi-lcm purge: /lcm purge works only inside Pi (--help lists the commands here)",
        ),
        (
            &["export", "-"],
            "invalid value '-' for '[PATH]': it takes a path; for a file named -, write ./- (see --help",
        ),
        (&["stats", "--db", "/"], "/ is a folder, and no database: name a file in it"),
        (&["stats", "--session", "\u{1b}[2Jx"], "there is no session `"),
        (&["\u{1b}[2J\u{9b}31m\nerror: x"], "unrecognized subcommand '"),
        (&["stats", "--\u{1b}]0;x\u{7}\n\nUsage: y"], "unexpected argument '--"),
        (&["grep", "--role", "\u{202e}x\r\n\n"], "invalid value '"),
        (&["stats", &"long ".repeat(1000)], "unexpected argument 'long long "),
    ] {
        let reply = machine.say(arguments).await;
        let (code, said) = (reply.code, reply.complaint);
        assert!(code == 2 && said.starts_with(&failed(message).complaint), "{arguments:?}: {said}");
        assert!(!said.contains(is_unsafe) && !said.contains('\n') && said.len() < 500, "{said:?}");
        assert_eq!(reply.output, "", "{arguments:?}");
    }
    let (said, code) = machine.ask(&["show", "x"]).await;
    assert_eq!((&said["error"]["code"], code), (&json!("LCM_INVALID"), 2));
}

#[tokio::test]
async fn every_command_can_be_in_color() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(1, 5));
    let file = file.to_str().unwrap();
    assert_eq!(machine.say(&["import", file]).await.code, 0);
    let (found, _) = machine.ask(&["grep", "question"]).await;
    let id = found["hits"][0]["id"].as_str().unwrap();
    let commands: [&[&str]; 9] = [
        &["stats"],
        &["sessions"],
        &["grep", "question"],
        &["show", id],
        &["tree"],
        &["export", "--force", "out.md"],
        &["doctor"],
        &["import", file],
        &["backup"],
    ];
    let help = machine.say(&["--help"]).await.output;
    assert!(help.contains(r#"pi-lcm grep '"connection refused"'"#), "{help}");
    for command in commands {
        assert!(help.contains(&format!("\n  {} ", command[0])));
        for (when, columns, has_colors) in [
            ("always", None, true),
            ("never", Some(80), false),
            ("auto", None, false),
            ("auto", Some(80), true),
        ] {
            for arguments in [[&["--color", when], command].concat(), [command, &["--color", when]].concat()]
            {
                let reply = machine.say_in(&machine.at("project"), columns, &arguments).await;
                assert_eq!(reply.code, 0, "{arguments:?}: {}", reply.complaint);
                assert_eq!(reply.output.contains("\u{1b}["), has_colors, "{arguments:?}: {}", reply.output);
            }
        }
        let as_json = machine.say(&[command, &["--color=always", "--json"]].concat()).await.output;
        assert!(serde_json::from_str::<Value>(&as_json).is_ok(), "{as_json}");
    }
}

#[tokio::test]
async fn a_file_is_written_relative_to_the_shells_folder() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(1, 5));
    let file = file.to_str().unwrap();
    assert_eq!(machine.say(&["import", file]).await.code, 0);
    let (here, project) = (machine.at(""), machine.at("project"));
    let named = [" \"a\" --force.md", "--md", "b c.md"];
    for name in named {
        let reply = machine
            .say_in(&here, None, &["export", "--project", project.to_str().unwrap(), "--", name])
            .await;
        assert_eq!((reply.complaint.as_str(), reply.code), ("", 0));
        assert!(here.join(name).is_file(), "{name}: {}", reply.output);
    }
    let written =
        machine.say_in(&here, None, &["export", "--project", project.to_str().unwrap()]).await.output;
    assert!(written.contains(&here.join("pi-").display().to_string()), "{written}");

    let backup =
        machine.say_in(&here, None, &["backup", "kept.bak", "--project", project.to_str().unwrap()]).await;
    assert_eq!(backup.code, 0, "{}", backup.complaint);
    let (of_backup, _) = machine.ask(&["stats", "--db", here.join("kept.bak").to_str().unwrap()]).await;
    assert_eq!(of_backup["project"], json!({"messages": 2, "sessions": 1}));
    for command in [&["backup"][..], &["export"], &["export", "--jsonl"]] {
        for (path, folder) in [("none/", "none/"), ("none/file", "none")] {
            let none = machine.say(&[command, &[path]].concat()).await;
            let folder = project.join(folder);
            let why = format!("there is no folder {}: create it, or choose another", folder.display());
            assert_eq!(none, failed(&why), "{command:?}");
        }
    }
    let other = machine.say(&["stats", "--db", file]).await;
    assert!(
        other.complaint.contains("out.jsonl is not a database of this extension:"),
        "{}",
        other.complaint
    );
}

#[tokio::test]
async fn a_named_database_is_never_changed() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(3, 5));
    assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    let kept = machine.at("kept.bak");
    assert_eq!(machine.say(&["backup", kept.to_str().unwrap()]).await.code, 0);
    let before = fs::read(&kept).unwrap();
    let named = ["--db", kept.to_str().unwrap()];
    for command in [
        &["stats"][..],
        &["doctor"],
        &["grep", "x"],
        &["tree"],
        &["backup", machine.at("again.bak").to_str().unwrap()],
    ] {
        let code = machine.say(&[command, &named].concat()).await.code;
        assert!(code <= 1, "{command:?} exits with {code}");
        assert!(fs::read(&kept).unwrap() == before, "{command:?} writes to it");
    }
    assert!(machine.at("again.bak").exists());
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_database_is_imported() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(3, 5));
    assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    let kept = machine.at("kept.bak");
    let named = kept.to_str().unwrap();
    assert_eq!(machine.say(&["backup", named]).await.code, 0);
    let database = rusqlite::Connection::open(&kept).unwrap();
    database.execute("UPDATE messages SET codec = 0, json = x'7b' WHERE id = 2", []).unwrap();
    database.close().unwrap();
    let checked = machine.say(&["doctor", "--db", named]).await;
    let advice = format!("\nIn a project, pi-lcm import {named} adds all that can be read in it.");
    assert!(checked.code == 1 && checked.output.ends_with(&advice), "{}", checked.output);
    let cut = machine.at("cut.bak");
    fs::write(&cut, &fs::read(&kept).unwrap()[..8192]).unwrap();
    for command in ["stats", "doctor"] {
        let why = machine.say(&[command, "--db", cut.to_str().unwrap()]).await.complaint;
        assert!(why.contains(&format!("(pi-lcm import {}, in a project, ", cut.display())), "{why}");
        assert!(!why.contains("rebuild"), "{why}");
    }
    fs::create_dir(machine.at("other")).unwrap();
    let imported = machine.say_in(&machine.at("other"), None, &["import", named]).await;
    assert!(imported.output.contains("unreadable row"), "{}", imported.output);
    assert_eq!(imported.code, 2, "it could not read everything");
}

#[tokio::test]
async fn a_file_that_is_not_in_use_is_a_finding_until_a_rebuild_joins_both() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(3, 5));
    assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    let database = machine.files().into_keys().find(|path| path.extension() == Some("db".as_ref())).unwrap();
    let second = PathBuf::from(database.display().to_string().replace(".db", "-2.db"));
    fs::rename(&database, &second).unwrap();
    for (bytes, why) in [(vec![0x5a; 8192], "file is not"), (fs::read(&second).unwrap(), "it could not be")] {
        fs::write(&database, bytes).unwrap();
        let checked = machine.say(&["doctor"]).await;
        let found = format!("this check did not finish: {} is damaged: {why}", database.display());
        assert!(checked.code == 1 && checked.output.contains(&found), "{checked:?}");
        let joins = format!("showing {} instead. pi-lcm doctor --rebuild joins both", second.display());
        assert!(machine.say(&["stats"]).await.complaint.ends_with(&joins));
    }
    assert_eq!(machine.say(&["doctor", "--rebuild"]).await.code, 0);
    assert_eq!(machine.say(&["doctor"]).await.code, 0);
}

#[tokio::test]
async fn absurd_token_counts_are_accepted() {
    let machine = Machine::new();
    let file = machine.session("out.jsonl", "one", &Session::new().chat(3, 5));
    assert_eq!(machine.say(&["import", file.to_str().unwrap()]).await.code, 0);
    let database =
        machine.files().into_keys().find(|path| path.extension().is_some_and(|ending| ending == "db"));
    let database = rusqlite::Connection::open(database.unwrap()).unwrap();
    database.execute("UPDATE messages SET tokens = 9223372036854775807", []).unwrap();
    database.close().unwrap();
    for command in ["stats", "tree", "sessions"] {
        assert_eq!(machine.say(&[command]).await.code, 0, "{command}");
    }
}

#[tokio::test]
async fn a_database_without_sessions_is_no_history_but_is_read_if_it_is_named() {
    let machine = Machine::new();
    fs::write(machine.at("notes.jsonl"), "{}\n").unwrap();
    let reply = machine.say(&["import", machine.at("notes.jsonl").to_str().unwrap()]).await;
    assert_eq!(reply.code, 2, "{}", reply.output);
    let files = machine.files();
    for command in ["sessions", "stats", "doctor --rebuild"] {
        let reply = machine.say(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(reply.complaint.ends_with("or create one with pi-lcm import"), "{reply:?}");
    }
    assert!(machine.files() == files);
    let database = files.keys().find(|path| path.extension().is_some_and(|ending| ending == "db"));
    let named = ["--db", database.unwrap().to_str().unwrap()];
    for (arguments, code) in
        [(&["sessions"][..], 1), (&["grep", "flamingo"], 1), (&["tree"], 0), (&["stats"], 0)]
    {
        let reply = machine.say(&[arguments, &named].concat()).await;
        assert_eq!(reply.code, code, "{arguments:?}: {}", reply.output);
        assert!(!reply.output.contains("lacks a row"), "{}", reply.output);
    }
}

#[tokio::test]
async fn a_machines_key_has_its_name_in_json() {
    let machine = Machine::new();
    let key = machine.say(&["sync", "--key"]).await.output;
    assert!(key.starts_with("age1"), "{key}");
    assert_eq!(machine.ask(&["sync", "--key"]).await, (json!({"key": key}), 0));
}

#[tokio::test]
async fn simulate_needs_no_history() {
    let machine = Machine::new();
    let session = machine.session("out.jsonl", "one", &Session::new().chat(1, 3));
    let answer = |n: u64| {
        json!({"type": "message", "id": n.to_string(), "timestamp": "2026-11-20T09:00:00Z", "message": {"role": "assistant",
            "model": "some", "content": [{"type": "text", "text": "fine"}], "stopReason": "stop",
            "usage": {"input": 10, "output": 20, "cacheRead": 900 * n, "cacheWrite": 900,
                "cost": {"input": 3e-5, "output": 3e-4, "cacheRead": 27e-5, "cacheWrite": 3e-3, "total": 3e-3}}}})
    };
    // A fork begins with copies of older entries.
    let header = json!({"type": "session", "timestamp": "2026-11-21T10:00:00Z"});
    let lines: Vec<String> =
        std::iter::once(header).chain((0..40).map(answer)).map(|line| line.to_string()).collect();
    fs::write(&session, lines.join("\n")).unwrap();
    let folder = session.parent().unwrap().to_str().unwrap();
    let all = session.parent().unwrap().join("all");
    fs::create_dir_all(all.join("--a-project--")).unwrap();
    fs::copy(&session, all.join("--a-project--/one.jsonl")).unwrap();
    let all = all.to_str().unwrap();
    for arguments in [&["simulate", all][..], &["simulate", session.to_str().unwrap()]] {
        let said = machine.say(arguments).await;
        assert_eq!(said.code, 0, "{said:?}");
        let words = &said.output;
        assert!(words.contains("Pi alone") && words.contains("\nSimulated from 1 session"), "{words}");
        assert!(words.contains("at the prices of some (assuming a window of 200,000 tokens);"), "{words}");
    }
    let json = machine.say(&["simulate", folder, "--json", "--model", "anthropic/claude-opus-5-5"]).await;
    let json: Value = serde_json::from_str(&json.output).unwrap();
    let one = &json["sessions"][0];
    assert_eq!((&one["requests"], &one["model"]), (&40.into(), &"claude-opus-5.5".into()), "{json}");
    assert_eq!(one["started"], "2026-11-21T10:00:00.000Z", "{json}");
    assert!(machine.say(&["simulate", "--db", "none.db"]).await.complaint.contains("there is no "));
    let header = json!({"type": "session", "id": "one-1", "cwd": "/nowhere"}).to_string();
    fs::write(&session, [&[header], &lines[..]].concat().join("\n")).unwrap();
    assert_eq!(machine.say(&["import", session.to_str().unwrap()]).await.code, 0);
    let (one, code) = machine.ask(&["simulate", "--session", "one"]).await;
    assert_eq!((&one["sessions"][0]["requests"], code), (&40.into(), 0), "{one}");
    // A project's sessions, by its folder.
    let project = machine.dir.path().join("projects/one");
    fs::create_dir_all(&project).unwrap();
    let header =
        json!({"type": "session", "id": "of-one", "cwd": project, "timestamp": "2026-11-21T10:00:00Z"});
    let name = project.display().to_string().replace('/', "-");
    let of_one = machine.at(&format!("agent/sessions/-{name}--/of-one.jsonl"));
    fs::create_dir_all(of_one.parent().unwrap()).unwrap();
    fs::write(&of_one, format!("{header}\n{}\n", answer(1))).unwrap();
    let (one, code) = machine.ask(&["simulate", project.to_str().unwrap()]).await;
    assert_eq!((&one["sessions"][0]["requests"], code), (&1.into(), 0), "{one}");
    fs::remove_file(of_one).unwrap();
    // The last branch is of two of three answers.
    let mut branches: Vec<Value> = (1..4).map(answer).collect();
    branches[1]["parentId"] = "1".into();
    branches[2]["parentId"] = "1".into();
    let branches = branches.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let file = machine.dir.path().join("branches.jsonl");
    fs::write(&file, branches).unwrap();
    let said = machine.say(&["simulate", file.to_str().unwrap()]).await.output;
    let ends = "Only each session's last branch is replayed: 1 request on others left out.";
    assert!(said.trim_end().ends_with(ends), "{said}");
    fs::remove_file(&file).unwrap();
    let absurd =
        json!({"type": "message", "message": {"role": "assistant", "usage": {"input": -5, "output": 1e300}}});
    fs::write(&session, format!("not JSON\n{{\"type\":\"message\"}}\n{absurd}\n")).unwrap();
    fs::remove_dir_all(all).unwrap();
    for (arguments, message) in [
        (&["simulate", folder][..], "has no session of Pi with answers"),
        (&["simulate", "nowhere.jsonl"], "there is no "),
        (&["simulate", folder, "--model", "best"], "the prices of best are not known here: choose one of "),
    ] {
        let said = machine.say(arguments).await;
        assert!(said.code == 2 && said.complaint.contains(message), "{said:?}");
    }
}
