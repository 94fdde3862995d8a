//! Converts between a tool's parameter type and JSON: a schema that every provider accepts, and lenient
//! parsing of a call.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::model::read_json;
use crate::text;

/// Keys of a schema that mean nothing to a model and that some provider rejects.
const NOISE: &[&str] = &["$schema", "title", "format", "default", "additionalProperties", "minimum"];

/// No meaningful count is larger.
const ABSURD: f64 = 1_000_000.0;

/// The schema of `T`: one object of plain properties, enums as lists of strings, nothing nullable.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = plain(settings.into_generator().into_root_schema_for::<T>().to_value());
    if let Value::Object(schema) = &mut schema {
        // It describes the type, which the model never sees.
        schema.shift_remove("description");
    }
    schema
}

fn plain(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    schema.retain(|key, _| !NOISE.contains(&key.as_str()));
    if let Some(Value::Array(options)) = schema.shift_remove("anyOf") {
        // An optional value: use the one option that is not null.
        let some = options.into_iter().find(|option| option["type"] != "null");
        if let Some(Value::Object(some)) = some {
            for (key, value) in some {
                schema.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(options)) = schema.shift_remove("oneOf") {
        let names = options.into_iter().map(|mut option| option["const"].take()).collect();
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), Value::Array(names));
    }
    if let Some(Value::Array(kinds)) = schema.get("type") {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned();
        schema.insert("type".into(), kind.unwrap_or_default());
    }
    if let Some(Value::Array(names)) = schema.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            *property = plain(property.take());
        }
    }
    if let Some(items) = schema.get_mut("items") {
        *items = plain(items.take());
    }
    Value::Object(schema)
}

/// Parses the arguments of a call of `tool`. Null counts as absent, and a number is accepted as a string.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(tool: &str, arguments: &str) -> Result<T> {
    let wrong = |what: String| Error::invalid(format!("{tool}: {what}"));
    let mut object: Map<String, Value> = match arguments.trim() {
        "" | "null" => Map::new(),
        text => match read_json(text) {
            Ok(Value::Object(object)) => object,
            _ => {
                let shown = text::one_line(text, 60);
                return Err(wrong(format!("the arguments must be a JSON object, not `{shown}`")));
            }
        },
    };
    object.retain(|_, value| !value.is_null());
    let schema = schema::<T>();
    check(&schema, &object).map_err(wrong)?;
    for (name, value) in &mut object {
        if value.is_number() && schema["properties"][name]["type"] == "string" {
            *value = value.to_string().into();
        }
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| wrong(error.to_string()))
}

/// Checks a call against the schema, and words errors for a model: by names and values.
fn check(schema: &Value, object: &Map<String, Value>) -> std::result::Result<(), String> {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            let given: Vec<&str> = object.keys().map(String::as_str).take(5).collect();
            let given =
                if given.is_empty() { "nothing".into() } else { text::one_line(&given.join(", "), 80) };
            return Err(format!("{name} is missing ({given} was given)"));
        }
    }
    for (name, value) in object {
        let property = &schema["properties"][name];
        let shown = || text::one_line(&value.to_string(), 40);
        if let Some(names) = property["enum"].as_array() {
            if !names.contains(value) {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                return Err(format!("{name} must be one of {}, not {}", names.join(", "), shown()));
            }
        } else if property["type"] == "string" && !(value.is_string() || value.is_number()) {
            return Err(format!("{name} must be a string, not {}", shown()));
        } else if property["type"] == "integer" {
            let number = number(value).ok_or_else(|| format!("{name} must be a number, not {}", shown()))?;
            if !(0.0..=ABSURD).contains(&number) {
                return Err(format!(
                    "{name} must be a number from 0 to {ABSURD}, not {}: leave it out for the default",
                    shown()
                ));
            }
        } else if property["type"] == "array" && !value.is_array() {
            return Err(format!("{name} must be a list, not {}", shown()));
        } else if property["type"] == "boolean" && truth(value).is_none() {
            return Err(format!("{name} must be true or false, not {}", shown()));
        }
    }
    Ok(())
}

fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| !number.is_nan())
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(yes) => Some(*yes),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A count: a number, or a string that contains one. Fractions are truncated; 0 counts as absent, because
/// some hosts send it for null.
pub(super) fn count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<usize>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.is_null() {
        return Ok(None);
    }
    let number = number(&value).ok_or_else(|| D::Error::custom("not a number"))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates; bounds are checked next"
    )]
    Ok(Some(number as usize).filter(|count| *count > 0))
}

/// A boolean, or a string that contains one.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    truth(&Value::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("neither true nor false"))
}

/// A word: a string, or a number meant as one. Some hosts send the word `null` for null.
pub(super) fn word<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<String>, D::Error> {
    Ok(words(deserializer)?.filter(|word| word != "null"))
}

/// Any text that is not empty.
pub(super) fn words<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Null => Ok(None),
        _ => Err(D::Error::custom("not a string")),
    }
}
