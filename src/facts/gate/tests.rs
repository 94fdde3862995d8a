//! Conversations with summaries written by a person. In a summary, `[[key|words]]` mentions the fact `key`,
//! which a reader would call important; each fact is removed once, and must then be reported.
//!
//! Facts are files, numbers (also dates, versions and what a test run counts), identifiers (also of tickets,
//! hosts, options and settings), codes (names and numbers of errors, sometimes their messages), and the user's
//! rules and decisions. A summary has a file by its name or module; an identifier by its name; a number by its
//! value, rounded, converted, spelled out, or without its unit; a code by its name or in other words; a rule or
//! a decision in other words. `lost` lists facts that a summary lacks. What its author neither keeps nor lists
//! counts as a false alarm, even if another author would keep it.

use super::*;
use serde_json::Value as Json;

fn said(stretch: &Json) -> Vec<Said<'_>> {
    let pieces = stretch["said"].as_array().unwrap().iter();
    pieces
        .map(|piece| {
            let text = |at: usize| piece[at].as_str().unwrap_or_default();
            match text(0) {
                "user" => Said::User(text(1)),
                "assistant" => Said::Assistant(text(1)),
                "edit" => Said::Edit { path: text(1), old: text(2), new: text(3) },
                "write" => Said::Edit { path: text(1), old: "", new: text(2) },
                "run" | "read" => Said::Call(text(1)),
                _ => Said::Output(text(1)),
            }
        })
        .collect()
}

/// The summary without its marks and with the mentions to `cut` replaced, and its facts.
fn without(marked: &str, cut: impl Fn(&str) -> bool) -> (String, Vec<String>) {
    let (mut out, mut facts) = (String::new(), Vec::new());
    for piece in marked.split("[[") {
        let Some((mention, rest)) = piece.split_once("]]") else {
            out.push_str(piece);
            continue;
        };
        let (key, words) = mention.split_once('|').unwrap_or((mention, mention));
        out.push_str(if cut(key) { "it" } else { words });
        out.push_str(rest);
        if !facts.iter().any(|fact| fact == key) {
            facts.push(key.to_owned());
        }
    }
    (out, facts)
}

#[derive(Default)]
struct Figures {
    sought: usize,
    found: usize,
    anchors: usize,
    alarms: usize,
    /// False alarms about facts that the summary has in other words.
    reworded: usize,
    bytes: usize,
    added: usize,
    /// What was not found, and false alarms.
    missed: Vec<String>,
}

impl Figures {
    /// Found, false alarms and added bytes, in percent.
    fn percents(&self) -> [f64; 3] {
        [(self.found, self.sought), (self.alarms, self.anchors), (self.added, self.bytes)]
            .map(|(part, whole)| percent(part, whole))
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    let float = |number| f64::from(u32::try_from(number).unwrap());
    100.0 * float(part) / float(whole)
}

/// Whether a report names a fact.
fn names(report: &str, fact: &str) -> bool {
    report.contains(fact) || (report.len() > 2 && fact.contains(report))
}

/// The summary with each of its facts removed in turn. Rules and decisions have no marks: their words are
/// listed.
fn omissions(stretch: &Json, whole: &str) -> Vec<(String, String)> {
    let marked = stretch["summary"].as_str().unwrap();
    let (_, facts) = without(marked, |_| false);
    let cut = |fact: String| (without(marked, |key| key == fact).0, fact);
    let listed = stretch["kept"].as_array().into_iter().flatten();
    let stated = listed.filter(|fact| matches!(fact["kind"].as_str(), Some("rule" | "decision")));
    let cut_statement = |fact: &Json| {
        (whole.replace(fact["as"].as_str().unwrap(), "it"), fact["fact"].as_str().unwrap().to_owned())
    };
    facts.into_iter().map(cut).chain(stated.map(cut_statement)).collect()
}

fn measured(stretches: &str) -> Figures {
    let stretches: Json = serde_json::from_str(stretches).unwrap();
    let mut figures = Figures::default();
    for stretch in stretches.as_array().unwrap() {
        let name = stretch["name"].as_str().unwrap();
        let anchors = anchors(said(stretch));
        let (whole, marked) = without(stretch["summary"].as_str().unwrap(), |_| false);
        let reports = missing(&anchors, &whole);
        // What its author lists as lost is not a false alarm.
        let lost = stretch["lost"].as_array().into_iter().flatten();
        let lost: Vec<&str> = lost.map(|fact| fact["fact"].as_str().unwrap()).collect();
        let is_right = |report: &&&Anchor| lost.iter().any(|fact| names(&report.text, fact));
        let alarms: Vec<_> = reports.iter().filter(|report| !is_right(report)).collect();
        figures.missed.extend(alarms.iter().map(|alarm| format!("false alarm in {name}: {}", alarm.text)));
        figures.anchors += anchors.len();
        figures.alarms += alarms.len();
        let kept = stretch["kept"].as_array().into_iter().flatten();
        let kept: Vec<&str> = kept
            .map(|fact| fact["fact"].as_str().unwrap())
            .chain(marked.iter().map(String::as_str))
            .collect();
        let is_kept = |alarm: &&&&Anchor| kept.iter().any(|fact| names(&alarm.text, fact));
        figures.reworded += alarms.iter().filter(is_kept).count();
        for (cut, fact) in omissions(stretch, &whole) {
            let missing = missing(&anchors, &cut);
            let line = also(&missing, room(&cut)).unwrap_or_default();
            let is_new = |report: &&&Anchor| reports.iter().all(|known| known.text != report.text);
            let is_found =
                missing.iter().filter(is_new).any(|new| names(&new.text, &fact) && line.contains(&new.text));
            if !is_found {
                figures.missed.push(format!("not found in {name}: {fact}"));
            }
            figures.sought += 1;
            figures.found += usize::from(is_found);
            figures.bytes += cut.len();
            figures.added += line.len();
        }
    }
    figures
}

#[test]
fn lost_details_are_found_with_few_false_alarms() {
    let figures = measured(include_str!("stretches.json"));
    assert!(percent(figures.found, figures.sought) >= 95.0, "{:#?}", figures.missed);
    assert!(percent(figures.alarms, figures.anchors) <= 2.0, "{:#?}", figures.missed);
    assert!(percent(figures.added, figures.bytes) <= 8.0);
}

/// Once held out, now used for tuning. The rules at the time found 93.3 % in their first run, with 5.1 %
/// false alarms.
#[test]
fn most_lost_details_of_the_first_held_out_set_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out.json")).percents();
    assert!(found >= 97.0 && alarms <= 4.0 && added <= 9.5, "{found:.1} {alarms:.1} {added:.1}");
}

/// By another author, and now used for tuning. The rules that did not know it found 83.3 %, with 6.6 % false
/// alarms.
#[test]
fn most_lost_details_of_another_authors_set_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out_b.json")).percents();
    assert!(found >= 88.0 && alarms <= 5.0 && added <= 4.0, "{found:.1} {alarms:.1} {added:.1}");
}

/// By a third author, whose short summaries lose more, with lists of the rules and decisions they keep and of
/// what they lose. The goals are 95, 2 and 8 %.
#[test]
fn half_of_the_lost_details_of_short_summaries_are_found() {
    let figures = measured(include_str!("dev_c.json"));
    let [found, alarms, added] = figures.percents();
    assert!(
        found >= 54.0 && alarms <= 14.0 && added <= 18.0,
        "{found:.1} {alarms:.1} {added:.1} {:#?}",
        figures.missed
    );
}

/// By the same author. A failure shows no details: do not read this set when changing the rules. The rules
/// before the last change had 42.2, 21.6 and 17.6 %; the new ones 41.3, 20.1 and 17.5 % in their first run,
/// and 43.1, 19.8 and 17.3 % now that long rules come last.
#[test]
fn lost_details_of_the_unseen_set_are_found_as_often_as_measured() {
    let [found, alarms, added] = measured(include_str!("held_out_c.json")).percents();
    assert!(found >= 43.0 && alarms <= 20.0 && added <= 17.5, "{found:.1} {alarms:.1} {added:.1}");
}

/// Not read by those who wrote the rules, but measured while they changed them: 63.3, 24.8 and 14.3 % before,
/// 64.0, 24.8 and 13.8 % after.
#[test]
fn lost_details_of_a_set_newer_than_the_rules_are_found_as_often_as_measured() {
    let [found, alarms, added] = measured(include_str!("held_out_d.json")).percents();
    assert!(found >= 63.5 && alarms <= 25.0 && added <= 14.0, "{found:.1} {alarms:.1} {added:.1}");
}

/// Most false alarms are about facts that the summary indeed lacks and its author does not miss.
#[test]
fn few_facts_of_a_summary_count_as_missing() {
    for (set, most) in [
        (include_str!("stretches.json"), 0.5),
        (include_str!("held_out.json"), 1.0),
        (include_str!("held_out_b.json"), 0.5),
        (include_str!("dev_c.json"), 3.0),
        (include_str!("held_out_c.json"), 4.0),
        (include_str!("held_out_d.json"), 1.5),
    ] {
        let figures = measured(set);
        let reworded = percent(figures.reworded, figures.anchors);
        assert!(reworded <= most, "{reworded:.1}");
    }
}

#[test]
fn a_rule_is_present_if_a_sentence_is_about_the_same() {
    for (rule, same, other) in [
        ("Don't override the template.", "It works without touching the template.", "It works without it."),
        ("Max one new index per quarter.", "A single new index each quarter.", "The tests pass."),
        ("本番では詳細を出さないで。", "本番では詳細を出さない。", "テストは通った。"),
    ] {
        assert!(lost(&[Said::User(rule)], same).is_empty(), "{rule}");
        assert_eq!(lost(&[Said::User(rule)], other).len(), 1, "{rule}");
        assert_eq!(lost(&[Said::Assistant(rule)], other), [""; 0], "the model's words are not rules");
    }
}

#[test]
fn a_number_may_be_converted() {
    for (said, summary) in [
        ("Limit 600 ms.", "0.6 s"),
        ("It took 1 h 52 min.", "112 min"),
        ("It took 3m52s.", "232 s"),
        ("Pods have 512 MiB.", "0.5 GiB"),
        ("Cached for 30 s.", "half a minute"),
        ("Cached for 90 s.", "a minute and a half"),
        ("Cached for 15 min.", "a quarter of an hour"),
        ("Cached for 45 min.", "Forty-five minutes"),
        ("It took 300 requests.", "three hundred requests"),
    ] {
        assert_eq!(lost(&[Said::User(said)], summary), [""; 0], "{said}");
        assert_eq!(lost(&[Said::User(said)], "7 ms, 9 GB").len(), 1, "{said}");
    }
}

/// Errors of many kinds of tools, and names in many languages and formats.
#[test]
fn codes_names_and_files_of_many_tools_are_anchors() {
    for (said, anchor) in [
        (Said::Output("SQLITE_BUSY: database is locked"), "SQLITE_BUSY"),
        (Said::Output("Error: x\n  code: 'MODULE_NOT_FOUND'"), "MODULE_NOT_FOUND"),
        (Said::Output("src/A.cs(3,1): warning CS8602: Dereference"), "CS8602"),
        (Said::Output("HTTP/2 429"), "HTTP 429"),
        (Said::Output("a 0/1 CrashLoopBackOff 7"), "CrashLoopBackOff"),
        (Said::Assistant("VK_ERROR_DEVICE_LOST on AMD"), "VK_ERROR_DEVICE_LOST"),
        (Said::Assistant("MySQL error 1205"), "error 1205"),
        (Said::User("upgrade to Spring Boot 3.2"), "Spring Boot 3.2"),
        (Said::User("タイムアウトは30秒"), "タイムアウトは 30秒"),
        (Said::User("set the limit to 200"), "limit to 200"),
        (Said::User("Dockerfile"), "Dockerfile"),
        (Said::User("DATABASE_URL is wrong"), "DATABASE_URL"),
        (Said::User("this is ORD-1187"), "ORD-1187"),
        (Said::User("see #418"), "#418"),
        (Said::User("no more than 320 LUTs"), "more than 320 LUTs"),
        (Said::User("bis 90+ Tage"), "bis 90+ Tage"),
        (Said::Output("E  ActiveRecord::StatementInvalid: PG::GroupingError: x"), "GroupingError"),
        (Said::Output("PodEvictionFailure: Reached max retries"), "PodEvictionFailure"),
        (Said::Output("Error 1923. Service"), "Error 1923"),
        (Said::Edit { path: "a.cu", old: "", new: "constexpr int kThreads() {\n" }, "kThreads"),
        (Said::Edit { path: "a.ts", old: "const MAX_TRIES = 3;", new: "const MAX_TRIES = 5;" }, "MAX_TRIES"),
        (Said::Call("git rm src/dead.rs"), "src/dead.rs"),
        (Said::Call("git mv src/a.py src/b.py"), "src/b.py"),
        (Said::Edit { path: "a.clj", old: "", new: "(defn load-cfg [x]\n" }, "load-cfg"),
        (Said::Edit { path: "a.dart", old: "", new: "  Future<void> loadUser() async {\n" }, "loadUser"),
        (Said::Edit { path: "a.cpp", old: "", new: "bool Parser::readHeader(Stream& s) {\n" }, "readHeader"),
    ] {
        assert!(lost(&[said], "").iter().any(|lost| lost == anchor), "{said:?} {:?}", lost(&[said], ""));
    }
    let value = Said::Edit { path: "a.ts", old: "", new: "const BLOCK_BYTES = 4096;\n" };
    assert_eq!(lost(&[value], "a.ts"), [""; 0], "a value that is never mentioned");
    let query = Said::Edit { path: "a.sql", old: "", new: "select day, last_value(rate) over (x)\n" };
    assert_eq!(lost(&[query], "a.sql"), [""; 0], "a call");
    let ticks = Said::Edit { path: "src/OrderService.java", old: "", new: "" };
    assert_eq!(lost(&[ticks], "customers of OrderService").len(), 1);
}

#[test]
fn units_and_codes_are_known_by_their_other_names() {
    for (said, summary) in [
        ("Espera 30 segundos.", "30 s"),
        ("缓存 5 分钟。", "5 min"),
        ("Alle 12 Stunden.", "every 12 h"),
        ("Resync every 10 minutes.", "resync 10m"),
        ("At most 500 items.", "500 items"),
        ("It ended with exit code 2.", "exited with 2 in 9 s, code 2"),
        ("The proxy answered 502 Bad Gateway.", "HTTP 502"),
    ] {
        assert_eq!(lost(&[Said::User(said)], summary), [""; 0], "{said}");
        assert!(!lost(&[Said::User(said)], "It took 2 tries, 77 ms.").is_empty(), "{said}");
    }
}

fn lost(said: &[Said<'_>], summary: &str) -> Vec<String> {
    missing(&anchors(said.iter().copied()), summary).into_iter().map(|anchor| anchor.text.clone()).collect()
}

#[test]
fn a_number_may_be_spelled_in_many_ways() {
    for (said, summary) in [
        ("It takes 250 ms.", "250ms"),
        ("It takes 248.7 ms.", "about 249 ms"),
        ("It takes 30 seconds.", "a 30-second limit, 30s"),
        ("It has 12,500 rows.", "12500 rows"),
        ("It has 1.3 million rows.", "1.3M rows"),
        ("We cover 97 percent.", "97 %"),
        ("Takes 512 MiB.", "512 MB"),
        ("Takes 512 MiB.", "limit 512Mi"),
        ("It fell from 810 ms to 184 ms.", "810 → 184 ms"),
        ("Listens on port 8443.", "127.0.0.1:8443"),
        ("Tagged v1.2.3.", "release 1.2.3"),
        ("It takes 2 hours.", "takes two hours"),
        ("Costs $1,200.", "$1200"),
        ("Use #8abeb7 there.", "accent 8ABEB7"),
    ] {
        assert_eq!(lost(&[Said::User(said)], summary), [""; 0], "{said}");
        assert_eq!(
            lost(&[Said::User(said)], "It takes 77 ms, 3 rows, 1.2.4.").len(),
            1 + usize::from(said.contains("810")),
            "{said}"
        );
    }
}

#[test]
fn a_file_and_a_name_may_be_spelled_in_many_ways() {
    let edit = |path| Said::Edit { path, old: "", new: "" };
    for (path, summary) in [
        ("/home/u/app/src/cache.rs", "changed cache.rs."),
        ("/home/u/app/src/cache.rs", "changed src/{cache,store}.rs"),
        ("/home/u/app/src/cache.rs", "changed `src::cache`"),
        ("pkg/theme-selector.ts", "the theme-selector"),
        ("app/OrderService.java", "`OrderService` returns"),
    ] {
        assert_eq!(lost(&[edit(path)], summary), [""; 0], "{summary}");
        assert_eq!(lost(&[edit(path)], "changed my-cache.rs, cache.rst, theme, order").len(), 1);
    }
    let twins = [edit("src/a/mod.rs"), edit("src/b/mod.rs")];
    assert_eq!(lost(&twins, "changed a/mod.rs"), ["src/b/mod.rs"]);
    let defined = [Said::Edit { path: "a.rs", old: "", new: "fn evict_oldest() {}\n" }];
    assert_eq!(lost(&defined, "a.rs: Cache::evict_oldest, evictOldest"), [""; 0]);
    assert_eq!(lost(&defined, "a.rs: evict"), ["evict_oldest"]);
}

#[test]
fn noise_is_not_an_anchor() {
    for noise in [
        Said::User("at node_modules/ws/index.js:42:7 and /tmp/x.txt, see https://a.dev/x/y.rs and and/or"),
        Said::User(
            "on 2025-03-04 at 10:12:31, commit 3f2a91c0, line 42, step 3 of 5, Node.js, e.g. res.json()",
        ),
        Said::Assistant("Let me look at src/cache.rs first."),
        Said::User("port 0o700, 4x slower, \u{1b}[38;2;0;215;255m, On-demand and built-in, 01.27.21.png"),
        Said::User("    at load (/home/u/app/src/load.ts:3:9)"),
        Said::Output(
            "-rw-r--r-- 1 u u 4312 Mar  3 10:12 cache.rs\nsrc/a.ts:3: if (e.code === 'ENOENT')\nraise ValueError('x')",
        ),
        Said::Output("Command exited with code 1\nHTTP/1.1 404 Not Found\n    except KeyError: pass"),
        Said::Edit { path: "/tmp/try.py", old: "", new: "def attempt():\n" },
    ] {
        assert_eq!(lost(&[noise], ""), [""; 0], "{noise:?}");
    }
    let edit = Said::Edit { path: "try.py", old: "", new: "def first_attempt():\n" };
    assert_eq!(lost(&[edit, Said::Call("python try.py && rm try.py")], ""), [""; 0]);
    assert_eq!(lost(&[edit, Said::Call("docker run --rm app python try.py")], "").len(), 2);
}

#[test]
fn the_most_important_anchors_come_first_and_fit() {
    let said = [
        Said::User("Keep it below 250 ms."),
        Said::Edit { path: "src/cache.rs", old: "", new: "pub fn evict_oldest() {}\n" },
        Said::Output(
            "error[E0308]: mismatched types\nError: connect ECONNREFUSED\nError: EPIPE\nError: EMFILE\n",
        ),
        Said::Assistant("E0308 is solved in `evict_oldest`."),
    ];
    let anchors = anchors(said);
    let lost = missing(&anchors, "Nothing.");
    let line = "Also: E0308, src/cache.rs, Keep it below 250 ms, evict_oldest";
    assert_eq!(also(&lost, 24).unwrap(), line);
    assert_eq!(also(&lost, 7).unwrap(), "Also: E0308, src/cache.rs");
    // One of many errors that occurs only once in output is not an anchor.
    assert_eq!(also(&missing(&anchors, "E0308, src/cache.rs, 250 ms, evict_oldest"), 24), None);
    assert_eq!(also(&[], 24), None);
}

#[test]
fn work_is_bounded_and_odd_text_breaks_nothing() {
    let log =
        "2025-03-04 ERROR worker failed: ENOSPC at /a/b.rs:12 é 12 ms class FooError: bad\n".repeat(60_000);
    let indexes = "create index a_b on c; ".repeat(60_000);
    let odd = "é".repeat(30_000) + "1,2.3_é ./../~ {,} port v$ ```";
    let said = [
        Said::Output(&log),
        Said::User(&odd),
        Said::User(&log),
        Said::Call(&log),
        Said::Edit { path: "a.sql", old: &indexes, new: &log },
        Said::Edit { path: "b.sql", old: "", new: &indexes },
    ];
    let anchors = anchors(said);
    assert!(anchors.len() < 20, "{anchors:?}");
    assert!(missing(&anchors, &odd).len() <= anchors.len());
}
