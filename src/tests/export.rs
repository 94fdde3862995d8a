//! Exports can be imported again, and no file is overwritten.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::{Session, TestStore, ask_in};
use crate::commands;
use crate::engine::{Engine, Options};
use lcm_ingest::import::Home;
use lcm_model::config::{ProjectIdentity, Settings};
use lcm_model::error::Result;
use lcm_recall::Scope;
use lcm_store::Store;

/// Runs a command in a separate folder.
async fn ask(store: &Store, scope: &Scope, cwd: &Path, line: &str) -> Result<commands::Answer> {
    let home = Home {
        store: store.clone(),
        cwd: cwd.display().to_string(),
        identity: ProjectIdentity::Cwd,
        db_dir: cwd.to_owned(),
        session_id: "open".into(),
    };
    ask_in(&home, cwd, scope, None, line).await
}

/// Everything a store has of a session, independent of row ids.
async fn known(store: &Store) -> Vec<Value> {
    let read = store.read(|view| {
        let mut known = Vec::new();
        for session in view.messages().sessions(None)? {
            for entry in
                view.messages().exported_entries(session.id, lcm_model::ids::EntryId(0), usize::MAX >> 1)?
            {
                let shows = match &entry.shows {
                    lcm_store::Shows::Message(id) => {
                        json!(view.messages().message(*id)?.lineage.to_string())
                    }
                    lcm_store::Shows::Edit { target, rendition } => {
                        let lineage = rendition.map(|id| {
                            Ok::<_, lcm_model::error::Error>(view.messages().message(id)?.lineage.to_string())
                        });
                        json!([target, lineage.transpose()?])
                    }
                    other => json!(format!("{other:?}")),
                };
                let carried: Result<Vec<String>> = view
                    .summaries()
                    .carried_by(entry.row)?
                    .into_iter()
                    .map(|id| Ok(view.summaries().summary(id)?.hash.to_string()))
                    .collect();
                known.push(json!([session.session_id, entry.id, entry.parent, shows, carried?]));
            }
        }
        Ok(known)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn an_export_without_the_session_file_can_be_imported_completely() {
    let session = Session::new().user("the first").chat(6, 40);
    let fork = session.leaf().to_owned();
    let session = session
        .entry("label", json!({"targetId": fork, "label": "here"}))
        .chat(2, 40)
        .entry("context_edit", json!({"targetId": "e1", "replacement": {"content": "another"}}))
        .entry("context_edit", json!({"targetId": "e2", "replacement": null}))
        .entry("custom_message", json!({"customType": "note", "content": "a note", "display": true}))
        .at(&fork)
        .user("on another branch")
        .chat(1, 40);
    let asking = Asking::about(&session).await;
    let folder = tempfile::tempdir().unwrap();
    let store = &asking.store.store;
    let answer = ask(store, &asking.scope, folder.path(), "export out.jsonl --json").await.unwrap();
    let file = folder.path().join("out.jsonl");
    assert_eq!(answer.answer["files"], json!([file]));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\"type\":\"session\",\"version\":3,\"id\":\"one\","), "{text:.200}");

    let other = TestStore::new();
    let scope = Scope::at(other.ingest("open", &Session::new().user("hi")).await, None);
    ask(&other.store, &scope, folder.path(), "import out.jsonl").await.unwrap();
    let back: Vec<Value> = known(&other.store).await.into_iter().filter(|entry| entry[0] == "one").collect();
    assert_eq!(back, known(store).await);
}

#[tokio::test]
async fn a_branch_is_exported_as_markdown_and_no_file_is_overwritten_unasked() {
    let session = Session::new().user("show `x` and ```y```").chat(2, 5);
    let asking = Asking::about(&session).await;
    let folder = tempfile::tempdir().unwrap();
    let (store, scope) = (&asking.store.store, &asking.scope);
    let run = async |line: &str| ask(store, scope, folder.path(), line).await;
    let answer = run("export").await.unwrap();
    let file = PathBuf::from(answer.answer["files"][0].as_str().unwrap());
    assert!(
        answer.text.starts_with("5 messages written to ")
            && file == folder.path().join("pi-2025-11-20_one.md"),
        "{answer:?}"
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let id = asking.message(0).await;
    assert!(text.starts_with("# Session one\n\n"), "{text}");
    assert!(
        text.contains("\n## 1. User · ") && text.contains(&format!(" · {id}\n\nshow `x` and ```y```\n")),
        "{text}"
    );

    let error = run(&format!("export {}", file.display())).await.unwrap_err().to_string();
    assert!(
        error.ends_with("already exists: choose another name, or add --force to overwrite it"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    std::fs::write(&file, "other").unwrap();
    run(&format!("export --force \"{}\"", file.display())).await.unwrap();
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("# Session one"));
    let error = run("export talk.pdf").await.unwrap_err().to_string();
    assert!(
        error.starts_with("no format has the ending of talk.pdf: choose .md, .jsonl or .html"),
        "{error}"
    );
    let error = run("export nowhere/at/all.md").await.unwrap_err().to_string();
    assert!(error.ends_with("/nowhere/at: create it, or choose another"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(run("export --md --jsonl").await.is_err() && run("export --all").await.is_err());
}

#[tokio::test]
async fn each_session_of_a_project_is_exported_to_a_file() {
    let asking = Asking::about(&Session::new().chat(2, 5)).await;
    let asking = asking.with_session("two", &Session::new().chat(1, 5)).await;
    let folder = tempfile::tempdir().unwrap();
    let answer =
        ask(&asking.store.store, &asking.scope, folder.path(), "export --jsonl --all out").await.unwrap();
    assert!(answer.text.starts_with("4 messages of 2 sessions written, "), "{}", answer.text);
    assert_eq!(std::fs::read_dir(folder.path().join("out")).unwrap().count(), 2);
}

#[tokio::test]
async fn sessions_with_any_ids_have_one_file_each() {
    let mut asking = Asking::about(&Session::new().chat(2, 5)).await;
    let long = "x".repeat(5_000);
    let longer = format!("{long}y");
    let ids = ["a/b", "a_b", "a\\b", "A-1", "a-1", "..", "ä", "", &long, &longer];
    for id in ids {
        asking = asking.with_session(id, &Session::new().user(&format!("I am {id}")).chat(1, 5)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let export =
        async |line: &str| ask(&asking.store.store, &asking.scope, folder.path(), line).await.unwrap();
    let answer = export("export --jsonl --all out").await;
    let written: Vec<_> = folder.path().join("out").read_dir().unwrap().flatten().collect();
    assert_eq!((written.len(), answer.answer["files"].as_array().unwrap().len()), (11, 11));
    let names: std::collections::HashSet<String> =
        written.iter().map(|file| file.file_name().to_string_lossy().to_lowercase()).collect();
    assert_eq!(names.len(), 11, "also on a disk that ignores case: {names:?}");
    assert!(names.iter().all(|name| name.len() < 120), "{names:?}");
    export("export --jsonl --all --force out").await;
    assert_eq!(folder.path().join("out").read_dir().unwrap().count(), 11);
}

#[tokio::test]
async fn an_export_stops_when_its_session_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { db_dir: dir.path().join("db"), ..Settings::defaults(Path::new("/nowhere")) };
    let options = Options {
        cwd: "/project".into(),
        session_id: "one".into(),
        session_file: Some("/some/file.jsonl".into()),
        parent_session: None,
        settings,
    };
    let engine = Engine::open(options).await.unwrap();
    engine.persistor.hand_over(&Session::new().chat(3, 20).json(), vec![]).unwrap();
    let folders = json!({"sessionDir": "/nowhere", "allSessions": "/nowhere"});
    let line = format!("export --jsonl {}", dir.path().join("session.jsonl").display());
    let request = json!({"line": line, "leafId": "e6", "folders": folders}).to_string();
    let (answer, ()) = tokio::join!(engine.command(&request), engine.close());
    // What ends it depends on whether its next step is a read.
    let stopped = answer.unwrap_err().to_string();
    assert!(["cancelled", "the history store is closed"].contains(&stopped.as_str()), "{stopped}");
    let names = dir.path().read_dir().unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["db"]);
}
