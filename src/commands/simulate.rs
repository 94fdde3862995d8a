//! `/lcm simulate`: what recorded sessions would have cost with Pi alone, with Pi tuned, and with this extension.
//!
//! It reads Pi's session files and needs neither a history nor a model.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Answer, Command, CommandContext};
use lcm_ingest::import::{Folders, files_below, project_files, sessions_in};
use lcm_model::config::Settings;
use lcm_model::error::{Error, Result};
use lcm_model::policy::{Cost, Live, RecordedRequest, Simulated, float, simulate};
use lcm_model::text::{count, dollars, grouped, local_second, one_line, parse_iso, timestamp};
use lcm_model::tokens::estimate;
use lcm_model::{Message, Part, Role, Usage, read_json};
use lcm_store::tasks::blocking;

/// The model whose prices count, instead of a session's own.
pub(crate) const MODEL: &str = "--model";
/// Only in a shell: the session that the scope has.
pub(crate) const SESSION: &str = "--session";

pub(crate) const COMMAND: Command = Command {
    name: "simulate",
    help: "what recorded sessions would cost without and with this extension",
    usage: &[
        ("simulate", "replays this project's sessions in Pi; nothing is sent"),
        ("simulate PATH…", "replays session files, or those in a folder"),
        ("simulate --model claude-opus-5.5", "at that model's prices instead of the session's own"),
    ],
    arguments: &[(MODEL, "the model whose prices count")],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

/// Models whose prices are known without Pi, with those of the small model that summarizes, in dollars per million
/// tokens: input, output, cache read, cache write.
const KNOWN: [PricedModel; 4] = [
    ("claude-opus-5.5", 1_000_000, cost([4.0, 20.0, 0.2, 5.0]), cost([0.1, 0.5, 0.01, 0.125])),
    ("claude-fable-5.2", 1_000_000, cost([8.0, 40.0, 0.2, 10.0]), cost([0.1, 0.5, 0.01, 0.125])),
    ("gpt-6.2-sol", 272_000, cost([2.0, 10.0, 0.1, 2.5]), cost([0.1, 0.5, 0.01, 0.125])),
    ("gemini-4", 1_048_576, cost([2.0, 10.0, 0.1, 0.0]), cost([0.3, 2.5, 0.03, 0.0])),
];
/// The window of a model that the session does not tell.
const WINDOW: usize = 200_000;
/// The largest session file to read, in bytes.
const LARGEST: u64 = 2 << 30;
/// Part of a result that a summarizer is shown, in tokens.
const SHOWN: usize = 500;
/// After so long a pause, in ms, providers have forgotten a prompt, if they don't say.
const CACHED: i64 = 5 * 60_000;
/// Columns of the plot.
const PLOT: usize = 60;
const MILLION: f64 = 1_000_000.0;

/// Simulates the sessions in files and folders, by default those of this project.
async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let mut paths = asked.rest.paths()?;
    if asked.rest.has(SESSION) {
        paths.push(file(asked).await?);
    }
    let (settings, live, columns) =
        (asked.settings.clone(), asked.request.live.clone(), asked.request.columns);
    let known = asked.rest.value(MODEL).map(known).transpose()?;
    let nothing = Error::invalid(match paths.as_slice() {
        [] => "no session of Pi in this project has answers: name files or folders with sessions of Pi, or another project \
             with --project"
            .to_owned(),
        paths => {
            let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            format!("{} has no session of Pi with answers", places.join(", "))
        }
    });
    let (home, folders) = (asked.home.clone(), asked.request.folders.clone());
    blocking(move || {
        let mut rows = Vec::new();
        let files = if paths.is_empty() { project_files(&home, &folders) } else { files(&paths, &folders)? };
        for file in files {
            let text = read(&file)?;
            if let Some(row) = SimulatedSession::of(&file, &text, known, &live, &settings) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Err(nothing);
        }
        let (requests, [alone, tuned, ours]) = sum(&rows);
        let sum = json!({"requests": requests, "alone": alone, "tuned": tuned, "ours": ours});
        Ok(Answer::new(render(&rows, columns), json!({"sessions": rows, "sum": sum})))
    })
    .await
}

/// The file of the scope's session.
async fn file(asked: &CommandContext<'_>) -> Result<PathBuf> {
    let session = asked.scope.conversation;
    let found = asked.store().read(move |view| view.messages().sessions(Some(session))).await?;
    let file = found.into_iter().find_map(|session| session.file);
    file.map(PathBuf::from).ok_or_else(|| Error::invalid("this session has no file of Pi to replay"))
}

/// A model with known prices: its name, window, prices, and those of its summarizer.
type PricedModel = (&'static str, usize, Cost, Cost);

fn known(name: &str) -> Result<PricedModel> {
    let wanted = name.rsplit('/').next().unwrap_or(name).replace('-', ".");
    let found = KNOWN.into_iter().find(|(name, ..)| name.replace('-', ".").starts_with(&wanted));
    found.ok_or_else(|| {
        let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
        let name = one_line(name, 60);
        Error::invalid(format!("the prices of {name} are not known here: choose one of {}", names.join(", ")))
    })
}

const fn cost([input, output, cache_read, cache_write]: [f64; 4]) -> Cost {
    Cost { input, output, cache_read, cache_write }
}

/// The session files that paths name, oldest first in a folder; those of a project by its folder.
fn files(paths: &[PathBuf], folders: &Folders) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(Error::invalid(format!("there is no {}", path.display())));
        }
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let there = files_below(path)?;
        all.extend(if there.is_empty() { sessions_in(folders, path) } else { there });
    }
    Ok(all)
}

fn read(file: &Path) -> Result<String> {
    let failed = |error| Error::storing(format!("{} can't be read", file.display()), error);
    if file.metadata().map_err(failed)?.len() > LARGEST {
        return Err(Error::invalid(format!("{} is too large to simulate", file.display())));
    }
    Ok(String::from_utf8_lossy(&std::fs::read(file).map_err(failed)?).into_owned())
}

/// A session and its costs in dollars.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulatedSession {
    file: String,
    started: String,
    /// The same as people read it; sessions of one minute differ.
    #[serde(skip)]
    second: String,
    about: String,
    model: String,
    /// The model's window, in tokens.
    window: usize,
    /// Whether that is a guess: neither Pi's open session nor the list of known models tells.
    is_assumed: bool,
    requests: usize,
    /// Those on other branches than the last, which are not replayed.
    other_requests: usize,
    /// What Pi recorded as the session's cost.
    recorded: f64,
    alone: f64,
    tuned: f64,
    ours: f64,
    folds: usize,
    /// How often Pi alone compacts, and how many tokens are only in its summaries then.
    compactions: usize,
    lost: usize,
    #[serde(skip)]
    sizes: Vec<(usize, usize)>,
}

impl SimulatedSession {
    /// `open` is the session that Pi has open; `None` without any answer.
    fn of(
        file: &Path,
        text: &str,
        known: Option<PricedModel>,
        open: &Live,
        settings: &Settings,
    ) -> Option<Self> {
        let recording = Recording::of(text);
        let (model, window, cost, small) = match known {
            Some((name, window, cost, small)) => (name.to_owned(), Some(window), cost, Some(small)),
            None => (recording.model.clone(), recording.window(open), recording.prices(), None),
        };
        let (is_assumed, window) = (window.is_none(), window.unwrap_or(WINDOW));
        let window = window.max(recording.requests.iter().map(|request| request.prompt).max()?);
        let live = Live {
            context_window: Some(window),
            model: Some(model.clone()),
            cost,
            summarizer: small,
            ..Live::default()
        };
        let is_bound = recording.requests.iter().any(|request| request.thinking > 0);
        let Simulated { requests, alone, tuned, ours, folds, sizes } =
            simulate(&recording.requests, &live, is_bound, settings);
        Some(Self {
            file: file.display().to_string(),
            started: timestamp(recording.started),
            second: local_second(recording.started),
            about: recording.about,
            model,
            window,
            is_assumed,
            requests,
            other_requests: recording.other_requests,
            recorded: recording.dollars,
            alone: alone.alone / MILLION,
            tuned: tuned.alone / MILLION,
            ours: ours / MILLION,
            folds,
            compactions: alone.compactions,
            lost: alone.dropped,
            sizes,
        })
    }
}

/// A session's last branch, as recorded.
#[derive(Default)]
struct Recording {
    started: i64,
    about: String,
    model: String,
    dollars: f64,
    requests: Vec<RecordedRequest>,
    /// Requests on its other branches.
    other_requests: usize,
    /// Tokens and dollars of each kind, from which prices follow.
    paid: [(usize, f64); 4],
}

impl Recording {
    fn of(text: &str) -> Self {
        let entries: Vec<Value> = text.lines().filter_map(|line| read_json(line).ok()).collect();
        let mut out = Self::default();
        let (mut said, mut is_compacted, mut before) = (0, false, None);
        let time_of = |entry: &Value| entry["timestamp"].as_str().and_then(parse_iso).unwrap_or_default();
        // A fork begins with copies of older entries.
        out.started = entries.iter().find(|entry| entry["type"] == "session").map_or(0, time_of);
        for entry in branch(&entries) {
            let kind = entry["type"].as_str().unwrap_or_default();
            let time = time_of(entry);
            if out.started == 0 {
                out.started = time;
            }
            match kind {
                "compaction" => is_compacted = true,
                "custom_message" | "branch_summary" => {
                    said += estimate(entry["content"].as_str().unwrap_or_default());
                }
                "message" => {
                    let message = Message::parse(&entry["message"].to_string());
                    match message.role {
                        Role::Assistant => {
                            let usage = Usage::of(&entry["message"]["usage"]);
                            if !is_answered(entry) {
                                continue;
                            }
                            out.price(&entry["message"]);
                            let pause = before.map_or(0, |before| time - before);
                            let last = out.requests.last().filter(|_| !is_compacted);
                            let is_cold = match out.paid[2].0 {
                                0 => pause > CACHED,
                                _ => last.is_some_and(|last| usage.cache_read < last.prompt / 2),
                            };
                            let thinking = message.parts.iter().map(|part| match part {
                                Part::Thinking(text) => estimate(text),
                                _ => 0,
                            });
                            out.requests.push(RecordedRequest {
                                prompt: usage.prompt(),
                                output: usage.output,
                                thinking: thinking.sum(),
                                said: std::mem::take(&mut said),
                                is_prompt: entry["message"]["stopReason"] == "stop",
                                is_cold,
                                is_compacted: std::mem::take(&mut is_compacted),
                                ..RecordedRequest::default()
                            });
                            before = Some(time);
                        }
                        Role::ToolResult => {
                            let size = message.pi_tokens();
                            if let Some(request) = out.requests.last_mut() {
                                request.results += size;
                                request.shown += size.min(SHOWN);
                            }
                            before = Some(time);
                        }
                        _ => {
                            if out.about.is_empty() && message.role == Role::User {
                                out.about = one_line(&message.text(), 60);
                            }
                            said += message.pi_tokens();
                        }
                    }
                }
                _ => {}
            }
        }
        let answers = entries.iter().filter(|entry| entry["message"]["role"] == "assistant");
        out.other_requests =
            answers.filter(|entry| is_answered(entry)).count().saturating_sub(out.requests.len());
        out
    }

    /// Adds what an answer has cost.
    fn price(&mut self, message: &Value) {
        let (usage, costs) = (&message["usage"], &message["usage"]["cost"]);
        for (sum, name) in self.paid.iter_mut().zip(["input", "output", "cacheRead", "cacheWrite"]) {
            let (tokens, cost) = (usage[name].as_u64(), costs[name].as_f64());
            sum.0 += usize::try_from(tokens.unwrap_or_default()).unwrap_or_default();
            sum.1 += cost.unwrap_or_default();
        }
        self.dollars += costs["total"].as_f64().unwrap_or_default();
        if let Some(model) = message["model"].as_str() {
            self.model = one_line(model, 60);
        }
    }

    /// The window of the model, if it is that of the session `open` in Pi or a known one.
    fn window(&self, open: &Live) -> Option<usize> {
        let is_open = open.model.as_ref().is_some_and(|model| model.rsplit('/').next() == Some(&self.model));
        let plain = |name: &str| name.replace('-', ".");
        let known = KNOWN.iter().find(|(name, ..)| plain(name) == plain(&self.model));
        open.context_window.filter(|_| is_open).or(known.map(|(_, window, ..)| *window))
    }

    /// The prices that the answers were paid at, per million tokens; 0 where nothing was used.
    fn prices(&self) -> Cost {
        let price = |(tokens, cost)| if tokens > 0 { cost * MILLION / float(tokens) } else { 0.0 };
        let [input, output, read, write] = self.paid.map(price);
        let input = if input > 0.0 { input } else { write };
        cost([input, output, read, write])
    }
}

/// Whether an answer says what it used.
fn is_answered(entry: &Value) -> bool {
    let usage = Usage::of(&entry["message"]["usage"]);
    usage.prompt() > 0 && usage.output > 0
}

/// The entries from the first to the last one; all of them in a file without ids.
fn branch(entries: &[Value]) -> Vec<&Value> {
    let by_id: std::collections::HashMap<&str, &Value> =
        entries.iter().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect();
    let last = entries.iter().rfind(|entry| entry["parentId"].is_string());
    if last.is_none() {
        return entries.iter().collect();
    }
    let parent = |entry: &&Value| by_id.get(entry["parentId"].as_str()?).copied();
    // A file may name its entries in a circle.
    let mut path: Vec<&Value> = std::iter::successors(last, parent).take(entries.len() + 1).collect();
    path.reverse();
    path
}

/// The number of requests, and what they cost with Pi alone, with Pi tuned and with this extension.
fn sum(rows: &[SimulatedSession]) -> (usize, [f64; 3]) {
    let of = |part: fn(&SimulatedSession) -> f64| rows.iter().map(part).sum();
    let requests = rows.iter().map(|row| row.requests).sum();
    (requests, [of(|row| row.alone), of(|row| row.tuned), of(|row| row.ours)])
}

fn render(rows: &[SimulatedSession], columns: Option<usize>) -> String {
    let mut out = format!(
        "{:<19}  {:>8}  {:>10}  {:>10}  {:>14}  {:>5}\n",
        "Session", "requests", "Pi alone", "Pi tuned", "this extension", "folds"
    );
    for row in rows {
        out += &line(&row.second, row.requests, [row.alone, row.tuned, row.ours], row.folds);
    }
    if rows.len() > 1 {
        let (requests, costs) = sum(rows);
        out += &line("total", requests, costs, rows.iter().map(|row| row.folds).sum());
    }
    if let Some(row) = rows.iter().max_by_key(|row| row.requests) {
        // Blocks may be two columns wide.
        let width = columns.map_or(PLOT, |columns| PLOT.min(columns.saturating_sub(20) / 2).max(10));
        let most = row.sizes.iter().map(|(alone, ours)| *alone.max(ours)).max().unwrap_or(1);
        let plot = |of: fn(&(usize, usize)) -> usize| plotted(&row.sizes, of, most, width);
        out += &format!(
            "\nThe context of {}, up to {} tokens: {}\n  Pi alone        {}\n  this extension  {}\n",
            row.second,
            grouped(most),
            row.about,
            plot(|(alone, _)| *alone),
            plot(|(_, ours)| *ours)
        );
    }
    let lost = rows.iter().map(|row| row.lost).sum::<usize>();
    let compactions = rows.iter().map(|row| row.compactions).sum::<usize>();
    if compactions > 0 {
        out += &format!(
            "\nPi alone compacts {}, and leaves {} tokens to its summaries; here every message stays.\n",
            count(compactions, "time"),
            grouped(lost)
        );
    }
    let model = |row: &SimulatedSession| {
        let window = if row.is_assumed { "assuming a window" } else { "window" };
        format!("{} ({window} of {} tokens)", row.model, grouped(row.window))
    };
    let mut models: Vec<String> = rows.iter().map(model).collect();
    models.sort_unstable();
    models.dedup();
    out += &format!(
        "\nSimulated from {}, at the prices of {}; nothing was sent. Percentages are of Pi alone; Pi tuned compacts at 40,000 tokens \
         and keeps 6,000.",
        count(rows.len(), "session"),
        one_line(&models.join(", "), 200)
    );
    match rows.iter().map(|row| row.other_requests).sum::<usize>() {
        0 => {}
        n => {
            out += &format!(
                " Only each session's last branch is replayed: {} on others left out.",
                count(n, "request")
            );
        }
    }
    out
}

fn line(name: &str, requests: usize, [alone, tuned, ours]: [f64; 3], folds: usize) -> String {
    let share = if alone > 0.0 { format!(" ({:.0} %)", 100.0 * ours / alone) } else { String::new() };
    format!(
        "{name:<19}  {:>8}  {:>10}  {:>10}  {:>14}  {folds:>5}\n",
        grouped(requests),
        dollars(alone),
        dollars(tuned),
        dollars(ours) + &share
    )
}

/// A line of blocks as high as the sizes.
fn plotted(sizes: &[(usize, usize)], of: fn(&(usize, usize)) -> usize, most: usize, width: usize) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = width.min(sizes.len());
    let columns = (0..width).map(|at| {
        let part = &sizes[at * sizes.len() / width..(at + 1) * sizes.len() / width];
        let size = part.iter().map(of).max().unwrap_or_default();
        BLOCKS[(size * 7 / most.max(1)).min(7)]
    });
    columns.collect()
}
