//! The engine without Pi: a session in memory, what was said in it, and a look-up.
//!
//! `cargo run --profile fast --example session`

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;

use pi_lossless_context::{Block, Engine, load_settings};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(session())
}

async fn session() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir();
    let sources = json!({"agentDir": folder, "cwd": folder, "projectTrusted": false, "environment": {}});
    let loaded = serde_json::to_value(load_settings(&sources.to_string())?)?;
    // Without a session file, nothing is written to the disk.
    let options = json!({"cwd": folder, "sessionId": "example", "settings": loaded["settings"]});
    let engine = Engine::open(serde_json::from_value(options)?).await?;

    let said = |id: &str, parent: Option<&str>, text: &str| -> Value {
        let time = "2026-11-27T09:00:00.000Z";
        let message = json!({"role": "user", "content": text, "timestamp": 1_795_770_000_000_i64});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message})
    };
    let entries =
        json!([said("a", None, "The harbor fee is 12.50 EUR."), said("b", Some("a"), "And the crane?")]);
    engine.persistor.hand_over(&entries.to_string(), Vec::new())?;

    let question = json!({"query": "harbor fee"}).to_string();
    for block in engine.call_tool(1, "lcm_grep", &question, Some("b".to_owned()), false, None).await? {
        if let Block::Text(text) = block {
            println!("{text}");
        }
    }
    engine.close().await;
    Ok(())
}
