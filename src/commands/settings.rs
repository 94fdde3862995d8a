//! `/lcm settings`: shows the effective settings and their origins, and changes them in Pi's own files.

use serde_json::{Value, json};

use super::args::CommandLine;
use super::{Answer, Command, CommandRequest, Rest, as_asked, help};
use lcm_model::config::{
    Changed, Origin, Setting, SettingSources, change, is_trusted, listed, setting, settings,
};
use lcm_model::error::{Error, Result};
use lcm_model::text::one_line;
use lcm_store::tasks::blocking;

const GLOBAL: &str = "--global";
const PROJECT: &str = "--project";
const RESET: &str = "--reset";

pub(super) const COMMAND: Command = Command {
    name: "settings",
    help: "the settings and where their values come from; NAME=VALUE sets one",
    usage: &[
        ("settings", "in the TUI: opens a panel; elsewhere: lists them"),
        ("settings NAME", "explains a setting and shows its value"),
        (
            "settings NAME=VALUE",
            "saves it in the file that has it, or else in the global settings; takes effect at once",
        ),
        ("settings NAME=VALUE --global", "saves it for all projects"),
        ("settings NAME=VALUE --project", "saves it for this project, in .pi/settings.json"),
        ("settings NAME --reset", "removes it from the file"),
    ],
    // Completions also have every setting's name.
    arguments: &[
        (GLOBAL, "for all projects"),
        (PROJECT, "for this project"),
        (RESET, "remove the setting from the file"),
    ],
    is_long: false,
    answer: |asked| Box::pin(answer(&asked.request.sources, &asked.rest)),
};

/// Reads and writes files, and waits for others that write them.
async fn answer(sources: &SettingSources, rest: &Rest) -> Result<Answer> {
    let (sources, rest) = (sources.clone(), rest.clone());
    blocking(move || look_or_change(&sources, &rest)).await
}

/// Answers `/lcm settings …` without an open session.
///
/// # Errors
/// A message for the user.
pub async fn run(request: &CommandRequest) -> Result<Answer> {
    let words = CommandLine::of(&request.line);
    let answered = match Rest::typed(&COMMAND, &words.rest) {
        _ if words.wants_help => Ok(help::of(&COMMAND)),
        Ok(rest) => answer(&request.sources, &rest).await,
        Err(error) => Err(error),
    };
    as_asked(&words, answered)
}

fn look_or_change(sources: &SettingSources, rest: &Rest) -> Result<Answer> {
    let (has, text) = (|option| rest.has(option), rest.only()?);
    let has_options = has(GLOBAL) || has(PROJECT) || has(RESET);
    if has(GLOBAL) && has(PROJECT) {
        return Err(Error::invalid("use either --global or --project"));
    }
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text, None),
    };
    if has(RESET) && (name.is_empty() || value.is_some()) {
        return Err(Error::invalid("--reset takes only a name: /lcm settings NAME --reset"));
    }
    if name.is_empty() && (value.is_some() || has_options) {
        return Err(Error::invalid("the name of the setting is missing: /lcm settings NAME=VALUE"));
    }
    if name.is_empty() {
        let all = settings(sources);
        return Ok(Answer::new(list(&all), json!({"settings": all})));
    }
    if let (None, Some((name, _))) = (value, name.split_once(char::is_whitespace))
        && setting(sources, name).is_ok()
    {
        return Err(Error::invalid(format!(
            "to set {name}, put = before the value: /lcm settings {name}=VALUE"
        )));
    }
    let current = setting(sources, name)?;
    if value.is_none() && !has(RESET) {
        if has_options {
            return Err(Error::invalid(format!(
                "the value of {name} is missing: /lcm settings {name}=VALUE"
            )));
        }
        return Ok(Answer::new(explained(&current), json!({"setting": current})));
    }
    let into = match (has(GLOBAL), has(PROJECT)) {
        (true, _) => Origin::Global,
        (_, true) => Origin::Project,
        _ if current.source == Origin::Project => Origin::Project,
        _ => Origin::Global,
    };
    if let ("syncRecipients", Some(keys)) = (current.name, value) {
        let keys: Vec<String> = listed(keys).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        lcm_sync::check_recipients(&keys)?;
    }
    let Changed { file, saved, is_new, setting } = change(sources, name, value, into)?;
    let text = match saved {
        None if !is_new => format!("There is nothing to remove in {}: {}", file.display(), shown(&setting)),
        None => format!("Removed from {}: {} now", file.display(), shown(&setting)),
        Some(_) if setting.source == into => {
            // Without a file of the project's there was nothing to trust.
            let waits = into == Origin::Project && !is_trusted(&sources.agent_dir, &sources.cwd);
            let waits = if waits {
                "; from its next start on, Pi ignores it until you trust this project"
            } else {
                ""
            };
            format!("Saved in {}: {}{waits}", file.display(), shown(&setting))
        }
        Some(value) => format!(
            "Saved in {}: {} = {}; it has no effect here, where {} overrides it",
            file.display(),
            setting.name,
            plain(&value),
            shown(&setting)
        ),
    };
    Ok(Answer::new(text, json!({"setting": setting, "saved": file.display().to_string()})))
}

fn source(setting: &Setting) -> String {
    match setting.source {
        Origin::Default => "default".into(),
        Origin::Global => "global".into(),
        Origin::Project => "project".into(),
        Origin::Environment => format!("environment, {}", setting.variable),
    }
}

/// A value as a user would type it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "none".into(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".into(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn list(settings: &[Setting]) -> String {
    let line = |setting: &Setting| {
        let (name, value) = (setting.name, one_line(&plain(&setting.value), 60));
        format!("{name:<25} {value} ({})\n", source(setting))
    };
    let lines: String = settings.iter().map(line).collect();
    format!("{lines}\nTo read about one: /lcm settings NAME. To set it: /lcm settings NAME=VALUE")
}

fn shown(setting: &Setting) -> String {
    format!("{} = {} ({})", setting.name, plain(&setting.value), source(setting))
}

fn explained(setting: &Setting) -> String {
    let Setting { help, takes, variable, .. } = setting;
    let default = plain(&setting.default);
    format!("{}\n\n{help}\n\nTakes {takes}. Default: {default}. Environment: {variable}.", shown(setting))
}
