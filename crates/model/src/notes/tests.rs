//! What changes do to notes, and which are rejected.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn add(text: &str) -> Change {
    Change::Add { number: None, text: text.into() }
}

#[test]
fn numbers_are_unique_and_each_note_knows_its_last_author() {
    let mut notes = Notes::default();
    assert_eq!(notes.apply(&add("one"), false).unwrap(), 1);
    assert_eq!(notes.apply(&add("two"), false).unwrap(), 2);
    assert_eq!(notes.apply(&Change::Remove { number: 2 }, false).unwrap(), 2);
    assert_eq!(notes.apply(&add("three"), true).unwrap(), 3);
    notes.apply(&Change::Replace { number: 1, text: "uno".into() }, true).unwrap();
    let note = |number, text: &str| Note { number, text: text.into(), by_user: true };
    assert_eq!(notes.list(), [note(1, "uno"), note(3, "three")]);
    notes.apply(&Change::Clear, true).unwrap();
    assert_eq!(notes.apply(&add("four").numbered(Some(9)), false).unwrap(), 9);
    // Two notes given the same number are still two.
    assert_eq!(notes.apply(&add("five").numbered(Some(9)), false).unwrap(), 10);
}

#[test]
fn the_model_cannot_change_the_users_notes() {
    let mut notes = Notes::default();
    notes.apply(&add("a rule"), true).unwrap();
    for change in [Change::Remove { number: 1 }, Change::Replace { number: 1, text: "none".into() }] {
        let error = notes.apply(&change, false).unwrap_err().to_string();
        assert_eq!(error, "note 1 is the user's: only /lcm notes changes it");
    }
    notes.apply(&Change::Remove { number: 1 }, true).unwrap();
    assert_eq!(notes.list(), []);
}

#[test]
fn invalid_changes_are_rejected_with_one_sentence_and_change_nothing() {
    let mut notes = Notes::default();
    for n in 0..4 {
        notes.apply(&add(&format!("note of number {n}")), false).unwrap();
    }
    let before = notes.clone();
    let replace = |text: &str| Change::Replace { number: 1, text: text.into() };
    let edit = |old: &str, text: &str| Change::Edit { number: 1, old: old.into(), text: text.into() };
    for (change, why) in [
        (replace(""), "the text is empty: say what the note is to say"),
        (replace("note of number 3"), "note 4 says that already"),
        (edit("number 0", "number 1"), "note 2 says that already"),
        (edit("number 7", "x"), "note 1 has no such text: give old word for word"),
        (edit("e", "x"), "note 1 has this text 2 times: give more of it as old"),
        (edit("note of number 0", ""), "the text is empty: say what the note is to say"),
        (Change::Remove { number: 9 }, "there is no note 9, only 1, 2, 3, 4"),
        (
            add(&"so much to say ".repeat(700)),
            "with it the notes would take 3,176 tokens and 2,000 is the most: say it shorter, or shorten or remove others",
        ),
    ] {
        assert_eq!(notes.apply(&change, false).unwrap_err().to_string(), why);
        assert_eq!(notes, before);
    }
}

#[test]
fn several_changes_are_atomic() {
    let mut notes = Notes::default();
    let read = |changes| Change::read(&json!({ "changes": changes })).unwrap();
    let first = read(json!([{"text": "build with make"}, {"text": "ship on Friday"}]));
    assert_eq!(notes.apply_all(&first).unwrap(), [1, 2]);
    let changes = read(json!([
        {"note": "2", "old": "Friday", "text": "Monday"},
        {"note": 1, "old": " with make"},
        {"text": "ask before a push"},
        {"note": 3, "text": "never push"},
        {"note": 1},
    ]));
    let before = notes.clone();
    let spoilt = [&changes[..], &changes[4..]].concat();
    let error = notes.apply_all(&spoilt).unwrap_err().to_string();
    assert_eq!(error, "change 6: there is no note 1, only 2, 3; none was made");
    assert_eq!(notes, before);
    assert_eq!(notes.apply_all(&changes).unwrap(), [2, 1, 3, 3, 1]);
    let texts: Vec<&str> = notes.list().iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, ["ship on Monday", "never push"]);
}

#[test]
fn a_call_is_read_leniently_and_its_text_is_one_line() {
    let read = |value| Change::read(&value).map_err(|error| error.to_string());
    let removed = || Ok(vec![Change::Remove { number: 3 }]);
    assert_eq!(read(json!({"changes": [{"text": " two\nlines "}]})), Ok(vec![add("two lines")]));
    for three in [json!("3"), json!(3.0), json!("3.0"), json!("3e0"), json!("0x3"), json!(3)] {
        assert_eq!(read(json!({"changes": [{"note": three, "old": "", "text": null}]})), removed());
    }
    let edit =
        |old: &str, text: &str| Ok(vec![Change::Edit { number: 3, old: old.into(), text: text.into() }]);
    assert_eq!(read(json!({"changes": [{"note": 3, "old": "  ", "text": " "}]})), edit("  ", " "));
    assert_eq!(read(json!({"changes": [{"note": 3, "old": " 80"}]})), edit(" 80", ""));
    assert_eq!(read(json!({"changes": [{"note": 0, "old": null, "text": "x"}]})), Ok(vec![add("x")]));
    for (changes, why) in [
        (json!([]), "changes is empty"),
        (json!([{}]), "text is missing: what the note is to say, or the note to remove"),
        (json!([{"old": "a", "text": "b"}]), "note is missing: which note has this old text"),
        (json!([{"note": "first"}]), "note must be a note's number"),
    ] {
        assert!(read(json!({ "changes": changes })).unwrap_err().starts_with(why));
    }
    assert!(read(json!({"action": "add", "text": "x"})).unwrap_err().starts_with("changes is empty"));
}

#[test]
fn the_users_change_is_read_as_it_was_written() {
    let replace = Change::Replace { number: 3, text: "y".into() };
    for change in [add("x"), add("x").numbered(Some(4)), replace, Change::Remove { number: 3 }, Change::Clear]
    {
        let entry = json!({"type": "custom_message", "customType": NOTE_TOOL, "details": change.details()});
        assert_eq!(Change::of_user(&entry.to_string()), Some(change));
        assert_eq!(Change::of_user(&entry.to_string().replace("lcm_note", "theirs")), None);
    }
    let details = json!({"lcmNote": {"action": "add", "text": "two\nlines"}});
    let entry = json!({"customType": NOTE_TOOL, "details": details});
    assert_eq!(Change::of_user(&entry.to_string()), Some(add("two lines")));
}

proptest! {
    #![proptest_config(lcm_testing::cases(256))]
    #[test]
    fn limits_hold_for_any_changes(asked in prop::collection::vec((0_u8..4, 0_u32..12, ".{0,260}"), 0..40)) {
        let mut notes = Notes::default();
        for (action, number, text) in asked {
            let change = match action {
                0 => json!({"note": number, "text": text}),
                1 => json!({"note": number}),
                2 => json!({"note": number, "old": text.chars().take(1).collect::<String>(), "text": text}),
                _ => json!({"text": text}),
            };
            if let Ok(changes) = Change::read(&json!({"changes": [change]})) {
                let _ = notes.apply_all(&changes);
            }
            prop_assert!(notes.tokens() <= MOST_TOKENS);
            prop_assert!(notes.list().iter().all(|note| note.text.lines().count() == 1));
        }
    }
}
