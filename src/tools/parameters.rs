//! Converts between a tool's parameter type and JSON: a schema that every provider accepts, and lenient
//! parsing of a call.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use lcm_model::error::{Error, Result};
use lcm_model::policy::whole;
use lcm_model::{read_json, text};

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

/// Parses the arguments of a call of `tool`. Null counts as absent.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(tool: &str, arguments: &str) -> Result<T> {
    let object = checked::<T>(tool, arguments)?;
    serde_json::from_value(Value::Object(object)).map_err(|error| Error::invalid(format!("{tool}: {error}")))
}

/// The same as JSON, checked against the schema, with values of its types. Errors are worded for a model: by names and
/// values. The items of a list are not checked.
pub(super) fn checked<T: JsonSchema>(tool: &str, arguments: &str) -> Result<Map<String, Value>> {
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
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(name) = required.iter().find(|name| !object.contains_key(**name)) {
        let given: Vec<&str> = object.keys().map(String::as_str).take(5).collect();
        let given = if given.is_empty() { "nothing".into() } else { text::one_line(&given.join(", "), 80) };
        return Err(wrong(format!("{name} is missing ({given} was given)")));
    }
    for (name, value) in &mut object {
        *value = converted(name, &schema["properties"][name], value.take()).map_err(wrong)?;
    }
    object.retain(|name, value| required.contains(&name.as_str()) || !is_absent(name, value));
    Ok(object)
}

/// One value: a number may be a string that contains one, and a string a number meant as one.
fn converted(name: &str, property: &Value, value: Value) -> std::result::Result<Value, String> {
    let wrong = |what: &str| format!("{name} must be {what}, not {}", text::one_line(&value.to_string(), 40));
    if let Some(names) = property["enum"].as_array() {
        let known = || names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        return if names.contains(&value) { Ok(value) } else { Err(wrong(&format!("one of {}", known()))) };
    }
    match property["type"].as_str() {
        Some("string") => match value {
            Value::Number(number) => Ok(number.to_string().into()),
            Value::String(_) => Ok(value),
            _ => Err(wrong("a string")),
        },
        Some("integer") => match number(&value).ok_or_else(|| wrong("a number"))? {
            count if (0.0..=ABSURD).contains(&count) => Ok(whole(count).into()),
            _ => Err(wrong(&format!("a number from 0 to {ABSURD}")) + ": leave it out for the default"),
        },
        Some("boolean") => truth(&value).map(Value::from).ok_or_else(|| wrong("true or false")),
        Some("array") if !value.is_array() => Err(wrong("a list")),
        _ => Ok(value),
    }
}

/// Some hosts send 0, a blank text or the word `null` for null. Only a query may be that word.
fn is_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Number(_) => *value == 0,
        Value::String(text) => text.trim().is_empty() || (text == "null" && name != "query"),
        _ => false,
    }
}

fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| !number.is_nan())
}

fn truth(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str()?.trim().parse().ok())
}
