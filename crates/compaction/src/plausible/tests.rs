//! Summaries by people and strong models are accepted in any style; what is no summary is not.

use super::*;
use lcm_model::tokens;

/// A stretch of a session, written for these tests, and summaries of it.
pub(crate) const SESSION: &str = include_str!("session.txt");
const SUMMARIES: &str = include_str!("summaries.txt");

fn judged(answer: &str, history: &str) -> Option<&'static str> {
    let words = (tokens::estimate(history) / 3).min(600) * 3 / 4;
    let asked = Asked { prompt: history, history, is_of_messages: true, words };
    fault(&unwrapped(answer), &asked)
}

#[test]
fn summaries_in_many_styles_are_accepted() {
    let all: Vec<&str> = SUMMARIES.split("\n===\n").collect();
    assert_eq!(all.len(), 12);
    for summary in all {
        assert_eq!(judged(summary, SESSION), None, "{summary}");
    }
}

#[test]
fn the_source_decides_on_the_language() {
    let german = "user: Bitte ersetze in src/export.ts die alte Bibliothek durch csv-stringify, aber lass das Trennzeichen, wie es ist. Die Buchhaltung liest die Datei jeden Morgen ein.\n\nassistant: Ich habe die Bibliothek ersetzt und das Trennzeichen gelassen. Ein Test schlägt noch fehl, weil csv-stringify leere Felder anders schreibt.\n\nuser: Dann stell die leeren Felder so ein, dass der Test wieder läuft, und committe es danach.";
    let chinese = "user: 请把导出脚本里的旧库换成新的库，但是分隔符不要改变，因为会计每天早上都要导入这个文件。\n\nassistant: 我已经替换了旧库，分隔符保持不变。有一个测试仍然失败，因为新的库写空字段的方式不同。\n\nuser: 那就调整空字段的设置，让测试通过，然后提交代码。";
    let summaries = [
        (
            german,
            "Die Bibliothek in src/export.ts wurde durch csv-stringify ersetzt, das Trennzeichen bleibt, weil die Buchhaltung die Datei einliest. Offen: leere Felder einstellen, bis der Test läuft, danach committen.",
        ),
        (
            chinese,
            "用户要求把导出脚本的旧库换成新的库，分隔符不变，因为会计要导入文件。旧库已经替换，一个测试因为空字段失败，接下来调整空字段的设置并提交代码。",
        ),
    ];
    for (own, summary) in summaries {
        for history in [german, chinese, SESSION] {
            assert_eq!(judged(summary, history).is_none(), history == own, "{summary}: {history}");
        }
    }
}
