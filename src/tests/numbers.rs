//! A number that several commands show is the same in all of them: with branches, a fork, an edited session, what is kept from the
//! model, another agent's session, summaries and a purge.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agents::fixtures;
use super::asking::{Asking, ask};
use super::import::Machine;
use super::support::{Session, TestStore, ask_in};
use crate::tools::{self, Block};
use lcm_recall::Scope;

/// All numbers with the same meaning, by who shows them.
type Shown = BTreeMap<&'static str, u64>;

struct Numbers<'a> {
    machine: &'a Machine,
    scope: Scope,
    /// By meaning.
    shown: BTreeMap<&'static str, Shown>,
}

impl Numbers<'_> {
    async fn ask(&self, line: &str) -> Value {
        let line = format!("{line} --json");
        let folder = &self.machine.folders.session_dir;
        ask_in(&self.machine.home, folder, &self.scope, None, &line).await.unwrap().answer
    }

    /// The first number after `before` in an answer of a tool or command.
    fn after(text: &str, before: &str) -> u64 {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}"));
        let digits: String = rest
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(|c| c.is_ascii_digit() || *c == ',')
            .collect();
        digits.replace(',', "").parse().unwrap_or_else(|_| panic!("{before}: {text}"))
    }

    fn add(&mut self, what: &'static str, who: &'static str, number: &Value) {
        let number = number.as_u64().unwrap_or_else(|| panic!("{who} shows {what}: {number}"));
        self.shown.entry(what).or_default().insert(who, number);
    }

    async fn tool(&self, name: &str, arguments: Value) -> Vec<Block> {
        let cancel = CancellationToken::new();
        let store = &self.machine.home.store;
        tools::call(store, &self.scope, name, &arguments.to_string(), None, &cancel).await.unwrap()
    }

    /// Gathers every number of every command.
    async fn gather(&mut self) {
        let stats = self.ask("stats").await;
        self.add("messages of the project", "stats", &stats["project"]["messages"]);
        self.add("messages of the session", "stats", &stats["session"]["messages"]);
        self.add("messages of the branch", "stats", &stats["session"]["onBranch"]);
        self.add("sessions", "stats", &stats["project"]["sessions"]);
        self.add("tokens of the branch with summaries", "stats", &stats["branch"]["frontierTokens"]);
        self.add("size", "stats", &stats["database"]["bytes"]);
        let of_session = |depths: &Value| -> u64 {
            depths.as_array().unwrap().iter().map(|depth| depth["summaries"].as_u64().unwrap()).sum()
        };
        self.add("summaries of the session", "stats", &json!(of_session(&stats["summaries"]["byDepth"])));

        let sessions = self.ask("sessions").await["sessions"].as_array().unwrap().clone();
        let current = sessions.iter().find(|session| session["current"] == true).unwrap();
        self.add("messages of the session", "sessions", &current["messages"]);
        self.add("sessions", "sessions", &json!(sessions.len()));

        let tree = self.ask("tree").await;
        self.add("messages of the branch", "tree", &tree["messages"]);
        self.add("tokens of the branch with summaries", "tree", &tree["frontierTokens"]);
        let mut summaries = tree["elsewhere"].as_u64().unwrap();
        let mut covered = 0;
        let mut todo: Vec<&Value> = tree["frontier"].as_array().unwrap().iter().collect();
        todo.iter().for_each(|item| covered += item["messages"].as_u64().unwrap());
        while let Some(item) = todo.pop() {
            summaries += u64::from(item["kind"] == "summary");
            todo.extend(item["sources"].as_array().into_iter().flatten());
        }
        self.add("summaries of the session", "tree", &json!(summaries));
        self.add("messages of the branch", "the tree's parts", &json!(covered));

        let doctor = self.ask("doctor").await;
        assert_eq!(doctor["sound"], true, "{doctor}");
        for (check, noun, what) in [
            ("Messages", "message", "messages of the project"),
            ("Entries", "session", "sessions"),
            ("Summaries", "summary", "summaries of the project"),
        ] {
            let checks = doctor["checks"].as_array().unwrap();
            let check = checks.iter().find(|one| one["name"] == check).unwrap();
            let seen = check["seen"].as_array().unwrap().iter().find(|seen| seen["what"] == noun).unwrap();
            self.add(what, "doctor", &seen["count"]);
        }

        let path = self.machine.at(&format!("copy-{}.bak", self.shown.len()));
        let _ = std::fs::remove_file(&path);
        let backup = self.ask(&format!("backup {}", path.display())).await;
        self.add("messages of the project", "backup", &backup["messages"]);
        self.add("sessions", "backup", &backup["sessions"]);
        self.add("summaries of the project", "backup", &backup["summaries"]);

        let out = |name: &str| self.machine.at(name).display().to_string();
        let markdown = self.ask(&format!("export --force {}", out("out.md"))).await;
        self.add("messages of the branch", "export", &markdown["messages"]);
        assert_eq!(markdown["private"], 1);
        let session = self.ask(&format!("export --jsonl --force {}", out("out.jsonl"))).await;
        self.add("messages of the session", "export --jsonl", &session["messages"]);

        let all = self
            .ask(&format!("export --jsonl --all --force {}", out(&format!("all-{}", self.shown.len()))))
            .await;
        self.add("sessions", "export --all", &json!(all["files"].as_array().unwrap().len()));
        self.add("messages of the project", "export --all", &all["messages"]);

        let described = self.tool("lcm_describe", json!({})).await;
        let [Block::Text(described)] = described.as_slice() else { panic!() };
        self.add("messages of the session", "lcm_describe", &json!(Self::after(described, "This session:")));
        self.add("messages of the branch", "lcm_describe", &json!(Self::after(described, "stored,")));
        self.add("messages of the project", "lcm_describe", &json!(Self::after(described, "This project:")));
        self.add("sessions", "lcm_describe", &json!(Self::after(described, "messages, ")));
    }

    fn check(&self, when: &str) {
        for (what, shown) in &self.shown {
            let first = shown.values().next().unwrap();
            assert!(shown.values().all(|number| number == first), "{when}: {what}: {shown:?}");
        }
    }
}

/// A session with two branches, something kept from the model, a prompt and edits.
fn session() -> Session {
    Session::new()
        .message(json!({"role": "system", "content": "Be brief."}))
        .user("How deep is the tank?")
        .assistant("Two meters.")
        .at("e3")
        .user("And how wide?")
        .at("e3")
        .message(json!({"role": "bashExecution", "command": "env", "output": "KEY=1", "exitCode": 0, "excludeFromContext": true}))
        .tool("bash", json!({"command": "measure"}), "3 meters")
        .entry("context_edit", json!({"targetId": "e7", "replacement": {"content": [{"type": "text", "text": "3 m"}]}}))
        .assistant("It is three meters wide.")
        .user("Thanks.")
}

#[tokio::test]
async fn what_two_commands_show_is_equal() {
    let machine = Machine::new();
    std::fs::write(machine.folders.session_dir.join("viewer.html"), "").unwrap();
    let own = session();
    machine.write("2026-11-20_one.jsonl", "one", &own.entries);
    machine.run("").await;
    let find = async |id: &'static str| {
        machine.home.store.read(move |view| Ok(view.messages().conversation(id)?.unwrap())).await.unwrap()
    };
    let scope = Scope::at(find("one").await, Some(own.leaf().to_owned()));
    let check = async |when: &str, scope: &Scope| {
        let mut numbers = Numbers { machine: &machine, scope: scope.clone(), shown: BTreeMap::new() };
        numbers.gather().await;
        numbers.check(when);
        numbers.shown
    };
    check("a session", &scope).await;

    let fork = own.clone().at("e9").user("And how high?").assistant("One meter.");
    machine.write("2026-11-21_two.jsonl", "two", &fork.entries);
    machine.run("").await;
    let shown = check("a fork", &scope).await;
    assert_eq!((shown["sessions"]["stats"], shown["messages of the project"]["stats"]), (2, 10));
    let forked = Scope::at(find("two").await, Some(fork.leaf().to_owned()));
    check("in the fork", &forked).await;

    let asking = Asking {
        store: TestStore::of(machine.home.store.clone()),
        scope: scope.clone(),
        model: "p/m".into(),
    };
    let leaf = asking.leaf(0..2, "Tank\nIt is two meters deep.").await;
    asking.condensed(1, &[leaf], "Tank\nDeep.").await;
    check("summaries", &scope).await;

    machine.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    let shown = check("another agent", &scope).await;
    assert_eq!(shown["messages of the project"]["stats"], 10 + 16);

    let found = asking.json("search \"three meters\"").await;
    let line = format!("purge {} --yes", found["hits"][0]["id"].as_str().unwrap());
    let folder = &machine.folders.session_dir;
    let purged = ask_in(&machine.home, folder, &scope, None, &format!("{line} --json")).await.unwrap().answer;
    assert_eq!(purged["messages"], 1, "{purged}");
    let shown = check("a purge", &scope).await;
    let stats = ask_in(&machine.home, folder, &scope, None, "stats").await.unwrap().text;
    assert!(
        stats.contains("\nPurged          what was removed no longer counts in the messages, "),
        "{stats}"
    );
    assert_eq!(shown["messages of the project"]["stats"], 10 + 16 - 1);
    check("a purge, in the fork", &forked).await;

    let other = Session::new().user("Who painted it?").assistant("Nobody.");
    machine.write("2026-11-22_three.jsonl", "three", &other.entries);
    machine.run("").await;
    assert_eq!(check("a third session", &scope).await["sessions"]["stats"], 6);
    let line = "purge three --yes --json";
    let purged = ask_in(&machine.home, folder, &scope, None, line).await.unwrap().answer;
    assert_eq!(purged["messages"], 2, "{purged}");
    assert_eq!(check("a purge of a session", &scope).await["sessions"]["stats"], 5);
    let emptied = Scope::at(find("three").await, Some(other.leaf().to_owned()));
    // It is dated by when it began.
    let facts = machine
        .home
        .store
        .read(move |view| view.messages().session_facts(emptied.conversation))
        .await
        .unwrap();
    assert!(facts.messages == 0 && facts.from_time > 0 && facts.from_time == facts.to_time);
    for form in ["", "--jsonl "] {
        let line = format!("export {form}{}", machine.at("emptied").display());
        let refused = ask_in(&machine.home, folder, &emptied, None, &line).await.unwrap_err().to_string();
        assert!(
            refused.contains("there is nothing to export") && refused.contains("--jsonl --all"),
            "{line}: {refused}"
        );
        assert!(!machine.at("emptied").exists(), "{line}");
    }
}

/// A summary that goes on after the fork is no summary of the fork.
#[tokio::test]
async fn the_summaries_that_are_ready_are_among_those_that_are_counted() {
    let asking = Asking::about(&Session::new().chat(4, 5))
        .await
        .with_session("fork", &Session::new().chat(2, 5))
        .await;
    asking.leaf(0..2, "Title: Both\nSaid in both.").await;
    asking.leaf(2..6, "Title: One\nGoes on in one.").await;
    let fork = asking.store.store.read(|view| view.messages().conversation("fork")).await.unwrap().unwrap();
    let fork = Scope::at(fork, Some(Session::new().chat(2, 5).leaf().to_owned()));
    for (scope, summaries) in [(&asking.scope, 2), (&fork, 1)] {
        let stats = ask(&asking.store.store, scope, "stats --json").await.unwrap().answer;
        assert_eq!(stats["summaries"]["byDepth"][0]["summaries"], summaries, "{stats}");
        assert_eq!(stats["background"]["ready"], summaries, "{stats}");
        assert_eq!(stats["cost"]["session"]["summaries"], summaries, "{stats}");
    }
}
