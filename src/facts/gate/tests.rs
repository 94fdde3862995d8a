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
use figures::{Scope, measured, percent};

mod figures;

#[test]
fn lost_details_are_found_with_few_false_alarms() {
    let figures = measured(include_str!("stretches.json"));
    assert!(figures.percents()[0] >= 95.0, "{:#?}", figures.missed);
    assert!(figures.percents()[1] <= 2.0, "{:#?}", figures.missed);
    assert!(figures.percents()[2] <= 8.0);
}

/// Once held out, now used for tuning. The rules at the time found 93.3 % in their first run, with 5.1 %
/// false alarms.
#[test]
fn most_lost_details_of_the_first_held_out_set_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out.json")).percents();
    assert!(found >= 98.5 && alarms <= 3.8 && added <= 7.5, "{found:.1} {alarms:.1} {added:.1}");
}

/// By another author, and now used for tuning. The rules that did not know it found 83.3 %, with 6.6 % false
/// alarms.
#[test]
fn most_lost_details_of_another_authors_set_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out_b.json")).percents();
    assert!(found >= 88.9 && alarms <= 4.4 && added <= 3.5, "{found:.1} {alarms:.1} {added:.1}");
}

/// By a third author, whose short summaries lose more, with lists of the rules and decisions they keep and
/// of what they lose. The goals are 95, 2 and 8 %. Used for tuning, as are the next three, which were unseen
/// before. The rules before that have 57.5, 12.1 and 7.8 % in today's measure, in which what counts is the
/// line: a fact is back if the line says it, an alarm is what the line says in vain, and what the author
/// lists as lost is no ballast.
#[test]
fn two_thirds_of_the_lost_details_of_short_summaries_are_found() {
    let figures = measured(include_str!("dev_c.json"));
    let [found, alarms, added] = figures.percents();
    assert!(
        found >= 65.5 && alarms <= 13.5 && added <= 10.2,
        "{found:.1} {alarms:.1} {added:.1} {:#?}",
        figures.missed
    );
}

/// By the same author. Asked first, before tuning: 46.8, 19.7 and 17.1 %, in today's measure 49.3, 13.5 and
/// 8.4.
#[test]
fn most_lost_details_of_more_short_summaries_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out_c.json")).percents();
    assert!(found >= 73.5 && alarms <= 14.8 && added <= 12.2, "{found:.1} {alarms:.1} {added:.1}");
}

/// By a fourth author. Asked first, before tuning: 66.9, 23.1 and 11.5 %, in today's measure 66.7, 23.1 and
/// 10.7.
#[test]
fn most_lost_details_of_a_set_newer_than_the_rules_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out_d.json")).percents();
    assert!(found >= 71.5 && alarms <= 18.5 && added <= 11.2, "{found:.1} {alarms:.1} {added:.1}");
}

/// By a fifth author, and now used for tuning. Asked first, before tuning: 65.7, 7.6 and 5.2 %; of what is in scope,
/// 78.3 % with 7.7 % false alarms.
#[test]
fn most_lost_details_of_a_fifth_authors_set_are_found() {
    let [found, alarms, added] = measured(include_str!("held_out_e.json")).percents();
    assert!(found >= 73.0 && alarms <= 7.0 && added <= 5.5, "{found:.1} {alarms:.1} {added:.1}");
}

/// By a sixth author, and asked only once the rules were finished: they do not know it. Those before them found
/// 54.0 % with 11.9 % false alarms. Do not read this set when changing the rules.
#[test]
fn lost_details_of_the_unseen_set_are_found_as_often_as_measured() {
    let [found, alarms, added] = measured(include_str!("held_out_f.json")).percents();
    assert!(found >= 55.0 && alarms <= 12.7 && added <= 8.0, "{found:.1} {alarms:.1} {added:.1}");
}

/// Of what the authors of short summaries list as lost, in percent; and all that is added for it.
#[test]
fn half_of_what_short_summaries_lose_anyway_is_put_back() {
    for (set, least, most) in
        [(include_str!("dev_c.json"), 51.9, 22.5), (include_str!("held_out_c.json"), 63.5, 26.8)]
    {
        let figures = measured(set);
        let [back, added] = [(figures.back, figures.lost), (figures.all_added, figures.bytes)]
            .map(|(part, whole)| percent(part, whole));
        assert!(back >= least && added <= most, "{back:.1} {added:.1}");
    }
}

/// Most false alarms are about facts that the summary indeed lacks and its author does not miss.
#[test]
fn few_facts_of_a_summary_count_as_missing() {
    for (set, most) in [
        (include_str!("stretches.json"), 0.5),
        (include_str!("held_out.json"), 1.0),
        (include_str!("held_out_b.json"), 0.5),
        (include_str!("dev_c.json"), 2.5),
        (include_str!("held_out_c.json"), 3.0),
        (include_str!("held_out_d.json"), 0.5),
        (include_str!("held_out_e.json"), 2.8),
    ] {
        let all = measured(set).tally(|_| true);
        let reworded = percent(all.reworded, all.anchors);
        assert!(reworded <= most, "{reworded:.1}");
    }
}

/// Of the facts that the gate is to keep: how many are found, alarms, and alarms about what the summary has in
/// other words.
#[test]
fn facts_in_scope_are_found_as_often_as_measured() {
    for (set, least, most, false_most) in [
        (include_str!("stretches.json"), 99.0, 1.5, 0.5),
        (include_str!("held_out.json"), 98.0, 3.6, 0.5),
        (include_str!("held_out_b.json"), 91.9, 4.2, 0.5),
        (include_str!("dev_c.json"), 80.5, 11.8, 2.0),
        (include_str!("held_out_c.json"), 82.0, 12.6, 3.1),
        (include_str!("held_out_d.json"), 83.0, 17.5, 0.5),
        (include_str!("held_out_e.json"), 87.0, 7.0, 3.0),
        (include_str!("held_out_f.json"), 67.5, 10.7, 3.0),
    ] {
        let figures = measured(set);
        let all = figures.tally(|scope| scope != Scope::Outside);
        let [found, alarms, reworded] =
            [(all.found, all.sought), (all.alarms, all.anchors), (all.reworded, all.anchors)]
                .map(|(part, whole)| percent(part, whole));
        assert!(
            found >= least && alarms <= most && reworded <= false_most,
            "{found:.1} {alarms:.1} {reworded:.1}\n{}",
            figures.table()
        );
    }
}

#[test]
fn a_summary_of_usual_length_has_room_for_all_that_is_found() {
    assert_eq!(measured(include_str!("held_out_b.json")).crowded, 0);
}

/// The rules of pasted instructions are stored, and do not take the place of what the user says then.
#[test]
fn a_rule_after_pasted_instructions_is_an_anchor() {
    let pasted = "Never name a file after its author, always after what it does.\n".repeat(3)
        + &(0..200).map(|n| format!("Always check step {n} of the release list.\n")).collect::<String>();
    let said =
        [Said::User(&pasted), Said::Assistant("Read."), Said::User("Never deploy on Fridays, Mira insists.")];
    assert_eq!(lost(&said, "The release list was read."), ["Never deploy on Fridays"]);
    assert_eq!(lost(&said, "Deploys happen on any day but Friday."), [""; 0]);
}

#[test]
fn an_answer_comes_with_its_question_and_rules_do_not_take_all_the_room() {
    let answer = [Said::Assistant("Both images in the same release?"), Said::User("no, separate.")];
    assert_eq!(lost(&answer, "Built."), ["Both images in the same release? no, separate."]);
    let order = |said| [Said::User("Hi."), Said::Assistant("It asks the group each time."), Said::User(said)];
    assert_eq!(lost(&order("and cache it"), "Built."), ["cache it"]);
    assert_eq!(lost(&order("and cache it"), "Next: cache the group."), [""; 0]);
    assert_eq!(lost(&order("Approved"), "Built."), [""; 0]);
    let rules: String = (0..40).map(|n| format!("Never touch module number {n} of billing.\n")).collect();
    let said = [Said::User(&rules), Said::Edit { path: "src/cache.rs", old: "", new: "" }];
    let anchors = anchors(said);
    let line = also(&missing(&anchors, "Nothing."), 80).unwrap();
    assert!(line.ends_with("cache.rs") && line.len() < RULES + 80, "{line}");
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

/// The more sentences have a word, the less it tells: it is what the summary is about.
#[test]
fn a_topic_that_recurs_does_not_express_a_rule() {
    let said = [
        Said::User("The watchdog resets the board."),
        Said::Assistant("I see."),
        Said::User("Don't touch the watchdog timeout."),
    ];
    assert_eq!(lost(&said, "The watchdog fired. It never let the watchdog rest.").len(), 1);
    assert_eq!(lost(&said, "The watchdog fired. Its timeout stays."), [""; 0]);
}

/// A first message describes; later ones give orders in passing, and explain them.
#[test]
fn short_answers_are_decisions() {
    let said = |later| [Said::User("The list is slow."), Said::Assistant("I see."), Said::User(later)];
    for (later, anchors) in [
        ("Use the queue of the billing team", vec!["Use the queue of the billing team"]),
        ("make it 2048", vec!["make it 2048"]),
        ("rounding by finance wins, always", vec!["rounding by finance wins, always"]),
        ("fix the links, not the slugs", vec!["fix the links, not the slugs"]),
        ("lgtm", vec![]),
        ("the list goes to Hanane", vec!["the list goes to Hanane"]),
        ("the login page", vec![]),
        ("41 missing: report it", vec!["41 missing: report it"]),
        ("Write it for everyone, blameless, no names", vec!["Write it for everyone, blameless", "no names"]),
        ("no, save it in reviews, I paste it myself", vec!["no, save it in reviews", "I paste it myself"]),
        ("Never deploy on Fridays, customers complain", vec!["Never deploy on Fridays"]),
        ("Exactly right, thanks", vec![]),
        ("it was slow for the editors yesterday", vec![]),
    ] {
        let mut lost = lost(&said(later), "Done.");
        lost.retain(|text| !text.ends_with("to 2048"));
        assert_eq!(lost, anchors, "{later}");
    }
    assert_eq!(lost(&[Said::User("Use the queue of the billing team")], ""), [""; 0]);
    let limit = [Said::User("The page must load within 300 ms on phones.")];
    assert_eq!(lost(&limit, "Wanted: 0.3 s."), [""; 0], "a rule by its number");
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
        ("It takes 7 days.", "a week"),
        ("Off by 16.5 hours.", "16.5"),
        ("Bodies of 64m.", "64 MB"),
        ("Garde 30 jours.", "30 j"),
        ("It lasts 2.7 years.", "2.7 ans"),
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
        (Said::Assistant("All 57 host tests pass."), "57 host tests"),
        (Said::User("upgrade to Spring Boot 3.2"), "Spring Boot 3.2"),
        (Said::User("タイムアウトは30秒"), "タイムアウトは 30秒"),
        (Said::User("set the limit to 200"), "limit to 200"),
        (Said::User("Dockerfile"), "Dockerfile"),
        (Said::User("DATABASE_URL is wrong"), "DATABASE_URL"),
        (Said::User("this is ORD-1187"), "ORD-1187"),
        (Said::User("see #418"), "#418"),
        (Said::User("no more than 320 LUTs"), "than 320 LUTs"),
        (Said::User("bis 90+ Tage"), "90+ Tage"),
        (Said::Output("E  ActiveRecord::StatementInvalid: PG::GroupingError: x"), "GroupingError"),
        (Said::Output("PodEvictionFailure: Reached max retries"), "PodEvictionFailure"),
        (Said::Output("Error 1923. Service"), "Error 1923"),
        (Said::Output("StockError: WH-4041 unknown"), "WH-4041"),
        (Said::Assistant("NG0950: a required input is read too early."), "NG0950"),
        (Said::Assistant("On a conflict it ends with 409."), "HTTP 409"),
        (Said::Edit { path: "a.cu", old: "", new: "constexpr int kThreads() {\n" }, "kThreads"),
        (Said::Edit { path: "a.ts", old: "const MAX_TRIES = 3;", new: "const MAX_TRIES = 5;" }, "MAX_TRIES"),
        (Said::Call("git rm src/dead.rs"), "dead.rs"),
        (Said::Call("git mv src/a.py src/b.py"), "b.py"),
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
        ("db/0019_invoices.py", "migration 0019_invoices"),
    ] {
        assert_eq!(lost(&[edit(path)], summary), [""; 0], "{summary}");
        assert_eq!(lost(&[edit(path)], "changed my-cache.rs, cache.rst, theme, order").len(), 1);
    }
    let twins = [edit("src/a/mod.rs"), edit("src/b/mod.rs")];
    assert_eq!(lost(&twins, "changed a/mod.rs"), ["b/mod.rs"]);
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
    let line = "Also: Keep it below 250 ms, E0308, cache.rs, evict_oldest";
    assert_eq!(also(&lost, 80).unwrap(), line);
    // Rules, errors and changed files always, names if there is room.
    assert_eq!(also(&lost, 14).unwrap(), "Also: Keep it below 250 ms, E0308, cache.rs");
    // One of many errors that occurs only once in output is not an anchor.
    assert_eq!(also(&missing(&anchors, "E0308, src/cache.rs, 250 ms, evict_oldest"), 80), None);
    assert_eq!(also(&[], 80), None);
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
