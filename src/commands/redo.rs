//! `/lcm redo`: has summaries written again, as extracts are once a model answers.

use serde_json::json;

use super::tree::each;
use super::{Answer, Command, CommandContext, Summarizer};
use lcm_model::error::{Error, Result};
use lcm_model::ids::SummaryId;
use lcm_model::text::count;
use lcm_recall::{NodeId, Visibility, resolve};
use lcm_store::{Batch, View};

const ALL: &str = "all";
pub(super) const MODEL: &str = "--model";

pub(crate) const COMMAND: Command = Command {
    name: "redo",
    help: "write a summary again, or all of this branch",
    usage: &[
        (
            "redo s-ID",
            "has this summary written again by the model that /lcm context names, and what was made from it",
        ),
        ("redo all", "the same for all summaries of this branch"),
        ("redo WHAT --model PROVIDER/ID", "by this model"),
    ],
    arguments: &[(ALL, "all summaries of this branch"), (MODEL, "the model that writes")],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let which = asked.rest.only()?.to_owned();
    let is_all = which == ALL;
    let ids = match which.as_str() {
        // What was condensed from them is made again too.
        ALL => {
            let mut leaves = Vec::new();
            for item in &asked.overview().await?.0.frontier {
                each(item, &mut |card| leaves.extend((card.depth == 0).then(|| card.handle.clone())));
            }
            leaves
        }
        id if id.starts_with("s-") => vec![which],
        _ => {
            return Err(Error::invalid(
                "/lcm redo needs the id of a summary, s-…, or `all`: /lcm tree shows ids",
            ));
        }
    };
    let model = asked.rest.value(MODEL).map(ToOwned::to_owned);
    if let Some(model) = model.as_deref().filter(|model| !model.contains('/')) {
        return Err(Error::invalid(format!("{MODEL} takes PROVIDER/ID, not {model}")));
    }
    let (scope, named) = (asked.scope.clone(), model.clone());
    let read = move |view: &View<'_>| {
        let sight = Visibility::new(view, &scope)?;
        let (mut summaries, mut elsewhere) = (Vec::new(), 0);
        for id in &ids {
            if let NodeId::Summary(summary) = resolve(view, &scope, id, "/lcm tree shows ids")? {
                elsewhere += usize::from(sight.branch()?.forest.span(summary).is_none());
                summaries.push(summary);
            }
        }
        Ok((summaries, elsewhere))
    };
    let (summaries, elsewhere): (Vec<SummaryId>, _) = asked.store().read(read).await?;
    let number = summaries.len();
    if number == 0 {
        return Ok(Answer::sentence("This branch has no summaries yet."));
    }
    let redo = move |batch: &Batch<'_>| batch.summaries().redo(&summaries, named.as_deref());
    asked.store().write(redo).await?;
    let usual = asked.request.summarizers.first().map(Summarizer::in_words);
    let by = match model {
        // A shell does not know Pi's models.
        Some(model) if asked.request.summarizers.is_empty() => format!(" by {model}, if Pi can ask it"),
        Some(model) => format!(" by {model}"),
        None => usual.map(|model| format!(" by {model}")).unwrap_or_default(),
    };
    let when = match elsewhere {
        0 => "while the agent works or by the next compaction",
        _ => "once a branch that has it goes on: this one does not",
    };
    let what = match is_all {
        true => format!("{} and what is made from them", count(number, "leaf summary")),
        false => count(number, "summary"),
    };
    let text = format!("{what} will be written again{by}, {when}. Until then, the old text stays.");
    Ok(Answer::new(text, json!({"summaries": number})))
}
