//! `/lcm purge` asks first, lists other copies and mentions, and explains a refusal.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::secrets::{SECRET, SecretStore, everything, import};
use super::support::Session;
use crate::maintenance::purge::{Wish, find};
use lcm_model::ids::ConversationId;
use lcm_store::{Batch, Store};

// Other systems may refuse such a name.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_backup_whose_name_is_not_unicode_is_listed() {
    use std::os::unix::ffi::OsStrExt as _;
    let secrets = SecretStore::new().await;
    let odd = std::ffi::OsStr::from_bytes(b"project.db.\xff.bak");
    fs::write(secrets.dir.path().join(odd), "").unwrap();
    let asked = ask(&secrets, &format!("purge {}", secrets.name("e14").await)).await;
    let backups = asked.answer["still"]["backups"].as_array().unwrap();
    assert!(backups.iter().any(|path| path.as_str().unwrap().ends_with("project.db.\u{fffd}.bak")));
    assert!(
        asked.text.contains("backups and unused databases, if written since it was said: "),
        "{}",
        asked.text
    );
    (0..9).for_each(|n| fs::write(secrets.dir.path().join(format!("project.db.{n}.bak")), "").unwrap());
    let asked = ask(&secrets, "purge e14").await.text;
    assert!(asked.matches(".bak").count() == 10, "all of them: {asked}");
}

#[tokio::test]
async fn the_command_asks_first_and_lists_other_copies() {
    let secrets = SecretStore::new().await;
    let backup = ask(&secrets, "backup").await.text;
    let copy = secrets.dir.path().read_dir().unwrap().flatten().map(|file| file.path());
    let mut copy = copy;
    let copy = copy.find(|path| path.extension().is_some_and(|ending| ending == "bak")).unwrap();
    assert!(backup.starts_with(&format!("The history was copied to {}: ", copy.display())), "{backup}");
    assert!(fs::read(&copy).unwrap().len() > 10_000);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = refused(&secrets, &format!("backup {}", copy.display())).await;
    assert!(again.contains("already exists and is not overwritten"), "{again}");
    let elsewhere = secrets.dir.path().join("copies");
    fs::create_dir(&elsewhere).unwrap();
    ask(&secrets, &format!("backup '{}'", elsewhere.display())).await;
    let copies: Vec<_> = elsewhere.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(copies.len(), 1);
    // Restored, it knows of itself.
    let restored = rusqlite::Connection::open(&copies[0]).unwrap();
    let known = "SELECT value FROM _metadata WHERE key = 'backups'";
    let known: String = restored.query_row(known, [], |row| row.get(0)).unwrap();
    assert!(known.contains(copies[0].to_str().unwrap()), "{known}");
    let store = Store::open(Some(secrets.dir.path()), "other", "/other").unwrap();
    import(&store, &copy).await;

    let name = secrets.store.read(|view| {
        Ok(view.messages().message(view.upkeep().purgeable_at(ConversationId(1), "e14")?.unwrap())?.lineage)
    });
    let name = name.await.unwrap().message_handle();
    let asked = ask(&secrets, &format!("purge {name}")).await;
    let confirm = asked.confirm.unwrap();
    assert_eq!(
        (confirm.title.as_str(), confirm.line.clone()),
        ("Permanently remove 1 message and 6 derived summaries?", format!("purge {name} --yes"))
    );
    assert!(confirm.message.ends_with("\nThis can't be undone."), "{}", confirm.message);
    assert!(asked.text.starts_with("This would permanently remove: 1 message of 2025-"), "{}", asked.text);
    let beginning = asked.text.lines().nth(1).unwrap();
    assert!(beginning.starts_with(&format!("  {name} ")) && beginning.contains(" 2025-"), "{}", asked.text);
    assert!(
        asked.text.ends_with(&format!("This can't be undone. /lcm purge {name} --yes removes it.")),
        "{}",
        asked.text
    );
    assert!(everything(&secrets.store).await.contains(SECRET));

    let synced = |batch: &Batch<'_>| {
        batch.synced().begin("/mnt/lcm shop")?;
        batch.synced().note_name(Some("shop"))
    };
    secrets.store.write(synced).await.unwrap();
    let done = ask(&secrets, &confirm.line).await;
    assert!(
        done.confirm.is_none() && done.text.starts_with("Permanently removed: 1 message of "),
        "{}",
        done.text
    );
    assert_eq!(done.answer["complete"], true);
    let target = "- the sync target and on other machines, if it was sent, until you sync here and then there: /lcm sync /mnt/lcm --name shop";
    let machines = ask(&secrets, "doctor").await.text;
    let unknown = "what they have is not known: /lcm sync /mnt/lcm --name shop asks them";
    assert!(machines.contains(unknown), "{machines}");
    for named in [target, "one.jsonl", "the open session", &copy.display().to_string(), "copies/"] {
        assert!(done.text.contains(named), "no {named} in {}", done.text);
    }
    assert!(
        done.text.contains(" contain nothing of it, unless another message repeats it. "),
        "{}",
        done.text
    );
    secrets.assert_gone().await;
    for line in ["purge e14", "purge e14 --yes"] {
        assert_eq!(refused(&secrets, line).await, "the message of e14 is purged already");
    }
}

#[tokio::test]
async fn the_open_session_sends_only_what_is_not_folded_away() {
    let secrets = SecretStore::new().await;
    let wish = Wish::Named("e14".into());
    for (shown_from, is_still) in
        [(None, (true, false)), (Some("e14"), (true, false)), (Some("e15"), (false, true))]
    {
        let found = find(&secrets.store, &secrets.scope(), &wish, shown_from.map(Into::into)).await.unwrap();
        assert_eq!((found.still.in_this_session, found.still.in_block), is_still, "{shown_from:?}");
    }
}

#[tokio::test]
async fn the_record_of_a_scripts_calls_is_purged_with_the_script() {
    let mut secrets = SecretStore::new().await;
    let code = format!("await tools.bash({{command: 'login {SECRET}'}})");
    let login = json!({"command": format!("login {SECRET}")});
    secrets.session =
        secrets.session.script(&code, &[("bash", login, "ok")], "Welcome.").script("…", &[], "Bye.");
    secrets.ingest("one", &secrets.session).await;
    ask(&secrets, "purge e14 --yes").await;
    let script = secrets.session.entries.iter().rev().nth(3).unwrap()["id"].as_str().unwrap();
    let done = ask(&secrets, &format!("purge {script} --yes")).await;
    assert_eq!((&done.answer["messages"], &done.answer["repeating"]), (&json!(1), &json!(1)));
    secrets.assert_gone().await;
    let left = everything(&secrets.store).await;
    assert!(left.contains("Bye.") && !left.contains("Welcome."));
}

/// If the user searches for it before purging it, it is in the tools' answers, which are not indexed.
#[tokio::test]
async fn tool_answers_that_mention_it_are_purged_too() {
    let mut secrets = SecretStore::new().await;
    let (above, name, below) =
        (secrets.name("e12").await, secrets.name("e14").await, secrets.name("e15").await);
    let grep = secrets.tool("lcm_grep", json!({"query": "phrase"})).await;
    let expand = secrets.tool("lcm_expand", json!({"summary_id": name})).await;
    assert!(grep.contains(SECRET) && grep.contains(&name) && expand.contains(SECRET), "{grep}\n{expand}");
    let start = format!("A session: the pass phrase is {SECRET} and st…");
    let innocent = format!("{above} · user: question");
    let answers =
        [("lcm_grep", &grep), ("lcm_expand", &expand), ("lcm_describe", &start), ("lcm_grep", &innocent)];
    for (tool, answer) in answers {
        secrets.session = secrets.session.tool(tool, json!({}), answer);
    }
    secrets.session = secrets.session.script("…", &[("lcm_grep", json!({}), "ok")], &grep);
    secrets.ingest("one", &secrets.session).await;
    // One that quotes an answer that is removed, and one of a message that stays and gets a new id.
    let echo =
        secrets.name(secrets.session.entries.iter().rev().nth(6).unwrap()["id"].as_str().unwrap()).await;
    for text in [format!("{echo} · toolResult"), format!("{below} · assistant: I shall")] {
        secrets.session = secrets.session.tool("lcm_describe", json!({}), &text);
    }
    secrets.ingest("one", &secrets.session).await;

    let asked = ask(&secrets, &format!("purge {name}")).await;
    assert!(asked.text.contains(", 5 messages repeating or mentioning it, and "), "{}", asked.text);
    // All that goes is named.
    let named =
        |end: &str| asked.text.lines().filter(|line| line.starts_with("  m-") && line.ends_with(end)).count();
    assert_eq!((named(" (repeats or mentions it)"), named("")), (5, 6), "{}", asked.text);
    let summaries = asked.text.lines().filter(|line| line.starts_with("  s-") && line.contains(" summary: "));
    assert_eq!((summaries.count(), &asked.answer["summaries"]), (5, &json!(6)), "{}", asked.text);
    assert!(asked.text.contains("\n  and 1 more\n"), "{}", asked.text);
    assert!(asked.text.contains("by an id, a guess of its text can be checked: m-"), "{}", asked.text);
    let done = ask(&secrets, &format!("purge {name} --yes")).await;
    assert_eq!((&done.answer["messages"], &done.answer["repeating"]), (&json!(1), &json!(5)));
    secrets.assert_gone().await;
    let error = refused(&secrets, &format!("show {name}")).await;
    let why =
        format!("there is no message {name} in this project (a purge removes ids, and changes later ones): ");
    assert!(error.starts_with(&why), "{error}");
    let left = everything(&secrets.store).await;
    assert!(
        left.contains(&innocent) && left.contains(&below) && !left.contains(&name) && !left.contains(&echo)
    );
    let naming = [secrets.name(secrets.session.leaf()).await];
    assert_eq!(done.answer["still"]["oldIds"], json!(naming));
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;
    // Those that stay can be purged too.
    ask(&secrets, &format!("purge {} --yes", naming[0])).await;
    assert!(!everything(&secrets.store).await.contains(&below));
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

#[tokio::test]
async fn a_branch_summary_is_purged_with_the_summaries_it_carries() {
    let mut secrets = SecretStore::new().await;
    let carries =
        |entry: &&Value| entry["type"] == "compaction" && entry["details"].to_string().contains(SECRET);
    let mut details = secrets.session.entries.iter().find(carries).unwrap()["details"].clone();
    details["leaf"] = json!(secrets.session.leaf());
    let fields = json!({"fromId": "e2", "summary": "Elsewhere.", "details": details, "fromHook": true});
    secrets.session = secrets.session.at("e2").entry("branch_summary", fields).chat(2, 10);
    secrets.ingest("one", &secrets.session).await;
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.messages.len(), plan.repeating.len()), (2, 1));
    secrets.assert_gone().await;
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

/// It carries none of the removed summaries, but the hash of a summary of what came after.
#[tokio::test]
async fn a_branch_summary_with_old_hashes_is_named() {
    let mut secrets = SecretStore::new().await;
    let later = "SELECT lower(hex(hash)) FROM summaries
                  WHERE depth = 0 ORDER BY first_message DESC LIMIT 1";
    let details = json!({
        "lcm": 1, "summaries": [], "frontier": [secrets.ask::<String>(later)], "covered": 2, "readFiles": [],
        "modifiedFiles": [], "leaf": secrets.session.leaf(),
    });
    let fields = json!({"fromId": "e2", "summary": "Elsewhere.", "details": details, "fromHook": true});
    secrets.session = secrets.session.at("e2").entry("branch_summary", fields);
    secrets.ingest("one", &secrets.session).await;
    let account = secrets.message_of(secrets.session.leaf()).await;
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.repeating.len(), plan.naming), (0, BTreeSet::from([account])));
}

#[tokio::test]
async fn the_remaining_mentions_are_listed_by_their_new_ids() {
    let mut secrets = SecretStore::new().await;
    let fields = json!({"fromId": "e3", "summary": "Elsewhere."});
    secrets.session = secrets.session.entry("branch_summary", fields);
    secrets.ingest("one", &secrets.session).await;
    let before = secrets.name(secrets.session.leaf()).await;
    let asked = ask(&secrets, "purge e14").await;
    assert_eq!(asked.answer["still"]["branchSummaries"], json!([before]));
    let done = ask(&secrets, "purge e14 --yes").await;
    let after = secrets.name(secrets.session.leaf()).await;
    assert_ne!(before, after);
    assert_eq!(done.answer["still"]["branchSummaries"], json!([after]));
}

#[tokio::test]
async fn a_refused_purge_is_explained_in_one_sentence() {
    let secrets = SecretStore::new().await;
    for session in ["oneself-a", "oneself-b"] {
        secrets.ingest(session, &Session::new().chat(1, 3)).await;
    }
    for (line, why) in [
        (
            "purge",
            "needs the id of a message or a session, `before` and a day, or --text and a text; /lcm search and /lcm sessions show ids",
        ),
        ("purge before", "needs the id of a message or a session"),
        ("purge two words", "needs the id of a message or a session"),
        ("purge before long", "long is neither a day such as 2026-11-20"),
        (
            "purge before 1999-01-01",
            "there is nothing to remove: no message is stored from before 1999-01-01",
        ),
        ("purge m-000000", "there is no message m-000000: a purge also removes the id; see"),
        ("purge s-000000", "s-000000 is a summary"),
        ("purge nobody", "there is no session and no message nobody"),
        ("purge onesel", "a purge needs at least 8 characters of a session's id, not only onesel"),
        ("purge oneself-", "more than one session begins with `oneself-`, among them oneself-"),
    ] {
        let answer = refused(&secrets, line).await;
        assert!(answer.contains(why), "{line}: {answer}");
    }
    let asked = ask(&secrets, "purge one").await;
    assert!(asked.confirm.is_some(), "{}", asked.text);
    let asked = ask(&secrets, "purge oneself-a").await.text;
    let counts = asked.lines().next().unwrap();
    assert!(counts.contains("remove: 2 messages of ") && !counts.contains("summar"), "{asked}");
    let before = ask(&secrets, "purge before 2999-01-01T09:30 --json").await;
    assert_eq!(before.answer["done"], false);
    assert_eq!(before.answer["sessions"], json!(["one", "oneself-a", "oneself-b"]));
}

pub(super) async fn ask(secrets: &SecretStore, line: &str) -> crate::commands::Answer {
    super::asking::ask(&secrets.store, &secrets.scope(), line).await.unwrap()
}

pub(super) async fn refused(secrets: &SecretStore, line: &str) -> String {
    super::asking::ask(&secrets.store, &secrets.scope(), line).await.unwrap_err().to_string()
}
