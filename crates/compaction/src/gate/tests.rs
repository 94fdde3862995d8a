//! What counts as a detail, and when a summary has it.

use serde_json::json;

use super::*;

fn said(role: &str, text: &str) -> Message {
    let tool = (role == "toolResult").then_some("bash");
    Message::parse(&json!({"role": role, "toolName": tool, "content": text}).to_string())
}

fn call(name: &str, arguments: &Value) -> Message {
    let call = json!({"type": "toolCall", "id": "1", "name": name, "arguments": arguments});
    Message::parse(&json!({"role": "assistant", "content": [call]}).to_string())
}

fn edit(path: &str) -> Message {
    call("edit", &json!({"path": path, "edits": [{"oldText": "a", "newText": "b"}]}))
}

/// What the line says that follows `summary`.
fn lost(messages: &[Message], summary: &str) -> String {
    let all = added_within(&details(messages), summary.to_owned(), 10_000, 0);
    all[summary.len()..].trim_start_matches("\nAlso: ").to_owned()
}

#[test]
fn a_number_may_be_spelled_in_many_ways() {
    for (text, summary) in [
        ("It takes 250 ms.", "250ms"),
        ("It takes 30 seconds.", "a 30-second limit"),
        ("It has 12,500 rows.", "12500 rows"),
        ("It has 1.3 million rows.", "1.3M rows"),
        ("We cover 97 percent.", "97 %"),
        ("Takes 512 MiB.", "512 MB"),
        ("It went from 810 to 184 ms.", "810 → 184 ms"),
        ("Listens on port 8443.", "127.0.0.1:8443"),
        ("Costs $1,200.", "$1200"),
        ("Espera 30 segundos.", "30 s"),
        ("缓存 5 分钟。", "5 min"),
        ("Off by 16.5 hours.", "16.5"),
    ] {
        assert_eq!(lost(&[said("user", text)], summary), "", "{text}");
        assert_ne!(lost(&[said("user", text)], "It takes 77 ms, 3 rows."), "", "{text}");
    }
}

#[test]
fn a_file_may_be_spelled_in_many_ways() {
    for (path, summary) in [
        ("/home/u/app/src/cache.rs", "changed cache.rs."),
        ("/home/u/app/src/cache.rs", "changed src/{cache,store}.rs"),
        ("/home/u/app/src/cache.rs", "changed `src::cache`"),
        ("pkg/theme-selector.ts", "the theme-selector"),
        ("app/OrderService.java", "`OrderService` returns"),
    ] {
        assert_eq!(lost(&[edit(path)], summary), "", "{summary}");
        assert_ne!(lost(&[edit(path)], "changed my-cache.rs, cache.rst, theme, order"), "", "{path}");
    }
    let twins = [edit("src/a/mod.rs"), edit("src/b/mod.rs"), said("user", "See b/mod.rs.")];
    assert_eq!(lost(&twins, "changed a/mod.rs"), "b/mod.rs");
}

#[test]
fn codes_of_many_tools_are_found() {
    for (role, text, code) in [
        ("toolResult", "SQLITE_BUSY: database is locked", "SQLITE_BUSY"),
        ("toolResult", "Error: x\n  code: 'MODULE_NOT_FOUND'", "MODULE_NOT_FOUND"),
        ("toolResult", "src/A.cs(3,1): warning CS8602: Dereference", "CS8602"),
        ("toolResult", "HTTP/2 429", "HTTP 429"),
        ("toolResult", "error[E0308]: mismatched types", "E0308"),
        ("toolResult", "Error: connect ECONNREFUSED 127.0.0.1:1", "ECONNREFUSED"),
        ("toolResult", "psycopg.errors.UndefinedTable: SQLSTATE 42P01", "SQLSTATE 42P01"),
        ("assistant", "VK_ERROR_DEVICE_LOST on AMD", "VK_ERROR_DEVICE_LOST"),
        ("assistant", "MySQL error 1205", "error 1205"),
        ("assistant", "NG0950: a required input is read too early.", "NG0950"),
        ("user", "The proxy answered 502 Bad Gateway.", "HTTP 502"),
        ("user", "It ended with exit code 2.", "exit code 2"),
        ("user", "It throws AccessDenied.", "AccessDenied"),
    ] {
        let lost = lost(&[said(role, text)], "It took 2 tries.");
        assert_eq!(lost, code, "{text}");
    }
    let denied = said("user", "It throws AccessDenied.");
    assert_eq!(lost(&[denied], "Access denied again."), "");
    assert_eq!(lost(&[said("user", "It ended with exit code 2.")], "Exit 2."), "");
}

#[test]
fn noise_is_no_detail() {
    for (role, text) in [
        ("user", "at node_modules/ws/index.js:42:7 and /tmp/x.txt, see https://a.dev/x/y.rs and and/or"),
        (
            "user",
            "on 2025-03-04 at 10:12:31, commit 3f2a91c0, line 42, step 3 of 5, Node.js, v1.2.3, res.json()",
        ),
        ("user", "    at load (/home/u/app/src/load.ts:3:9)"),
        ("assistant", "Let me look at src/cache.rs first. It changed 3 files."),
        (
            "toolResult",
            "-rw-r--r-- 1 u u 4312 cache.rs\nsrc/a.ts:3: if (e.code === 'ENOENT')\nraise KeyError('x')",
        ),
        ("toolResult", "Command exited with code 1\nHTTP/1.1 404 Not Found\n    except KeyError: pass"),
    ] {
        assert_eq!(lost(&[said(role, text)], ""), "", "{text}");
    }
    assert_eq!(lost(&[edit("/tmp/try.py"), call("read", &json!({"path": "src/a.rs"}))], ""), "");
    // Of many errors in output, those that recur matter.
    let many = "Error: EPIPE\nError: EMFILE\nError: EAGAIN";
    let recurring = [said("toolResult", many), said("toolResult", "Error: EMFILE")];
    assert_eq!(lost(&recurring, ""), "EMFILE");
}

#[test]
fn errors_and_changed_files_come_first_and_the_line_has_a_bound() {
    let messages = [
        said("user", "Keep it below 250 ms, see docs/limits.md."),
        edit("src/cache.rs"),
        said("assistant", "E0308 is solved."),
    ];
    let details = details(&messages);
    let line = |room| added_within(&details, "Nothing.".to_owned(), room, 40);
    assert_eq!(line(80), "Nothing.\nAlso: E0308, cache.rs, below 250 ms, limits.md");
    assert_eq!(line(10), "Nothing.\nAlso: E0308, cache.rs");
    let whole = "E0308, src/cache.rs, limits.md, 250 ms";
    assert_eq!(added(&details, whole.to_owned()), whole);
}

#[test]
fn work_is_bounded_and_odd_text_breaks_nothing() {
    let log =
        "2025-03-04 ERROR worker failed: ENOSPC at /a/b.rs:12 é 12 ms class FooError: bad\n".repeat(60_000);
    let odd = "é".repeat(30_000) + "1,2.3_é ./../~ {,} port v$ ```";
    let messages = [said("toolResult", &log), said("user", &odd), said("user", &log)];
    let details = details(&messages);
    assert!(details.len() < 20, "{details:?}");
    assert!(added(&details, odd.clone()).starts_with(&odd));
}
