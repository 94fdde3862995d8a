//! What a call used and what it costs, in Pi's format and by Pi's rules.

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::Answer;

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Used {
    /// Of the question, excluding cached tokens.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// The part of `output` that was thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Used {
    /// Pi's report, with costs by the model's `rates` in dollars per million tokens.
    pub(super) fn report(self, rates: &Map<String, Value>) -> Value {
        let Self { input, output, cache_read, cache_write, cache_write_1h, .. } = self;
        let rates = tier(rates, input + cache_read + cache_write);
        let rate = |key: &str| rates.get(key).and_then(Value::as_f64).unwrap_or_default();
        // In Pi's order of operations, so that even the last digit is equal.
        let million = 1_000_000.0;
        let long = cache_write_1h.unwrap_or_default();
        let short = cache_write.saturating_sub(long);
        let costs = [
            rate("input") / million * float(input),
            rate("output") / million * float(output),
            rate("cacheRead") / million * float(cache_read),
            (rate("cacheWrite") * float(short) + rate("input") * 2.0 * float(long)) / million,
        ];
        let total = costs.iter().fold(0.0, |sum, cost| sum + cost);
        let [input_cost, output_cost, read_cost, write_cost] = costs.map(dollars);
        let mut report = json!(self);
        report["totalTokens"] = (input + output + cache_read + cache_write).into();
        report["cost"] = json!({
            "input": input_cost, "output": output_cost, "cacheRead": read_cost, "cacheWrite": write_cost,
            "total": dollars(total),
        });
        report
    }
}

/// A count from a provider; 0 if missing.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Long questions may have their own rates.
fn tier(rates: &Map<String, Value>, input: u64) -> &Map<String, Value> {
    let above = |tier: &Map<String, Value>| tier.get("inputTokensAbove").and_then(Value::as_f64);
    let tiers =
        rates.get("tiers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let fitting = tiers
        .filter_map(|tier| above(tier).map(|above| (above, tier)))
        .filter(|(above, _)| float(input) > *above);
    fitting.fold((-1.0, rates), |best, next| if next.0 > best.0 { next } else { best }).1
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Formats whole numbers like JavaScript.
fn dollars(amount: f64) -> Value {
    let whole = if amount.fract() == 0.0 { format!("{amount:.0}").parse::<u64>().ok() } else { None };
    whole.map(Value::from).or_else(|| Number::from_f64(amount).map(Value::Number)).unwrap_or_default()
}

/// What the call of an answer used, in Pi's format.
pub fn usage(answer: &Answer) -> Option<&Value> {
    answer.as_ref().map_or_else(|failure| failure.usage.as_ref(), |reply| reply.usage.as_ref())
}

/// Adds it to `total`.
pub(crate) fn count_usage(total: &mut Option<Value>, answer: &Answer) {
    *total = total.take().into_iter().chain(usage(answer).cloned()).reduce(add);
}

/// The field-wise sum: numbers add, objects merge, anything else is taken from the first that has it.
fn add(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => Value::Object(merge(one, other)),
        (Value::Number(one), Value::Number(other)) => Value::Number(sum(one, &other)),
        (Value::Null, other) => other,
        (one, _) => one,
    }
}

fn merge(mut one: Map<String, Value>, other: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in other {
        let mine = one.remove(&key).unwrap_or(Value::Null);
        one.insert(key, add(mine, value));
    }
    one
}

fn sum(one: Number, other: &Number) -> Number {
    if let (Some(a), Some(b)) = (one.as_u64(), other.as_u64())
        && let Some(sum) = a.checked_add(b)
    {
        return sum.into();
    }
    let sum = one.as_f64().unwrap_or_default() + other.as_f64().unwrap_or_default();
    Number::from_f64(sum).unwrap_or(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(json: Value) -> Map<String, Value> {
        let Value::Object(rates) = json else { panic!("{json} are no rates") };
        rates
    }

    #[test]
    fn the_cost_equals_pis_own_report() {
        let used = Used { input: 900, output: 50, cache_read: 100, cache_write: 20, ..Used::default() };
        let report =
            used.report(&rates(json!({"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1.25})));
        let counts =
            json!({"input": 900, "output": 50, "cacheRead": 100, "cacheWrite": 20, "totalTokens": 1070});
        for (key, count) in counts.as_object().unwrap() {
            assert_eq!(&report[key], count, "{key}");
        }
        let dollars =
            ["input", "output", "cacheRead", "cacheWrite"].map(|key| report["cost"][key].as_f64().unwrap());
        assert_eq!(dollars, [1.0 / 1e6 * 900.0, 5.0 / 1e6 * 50.0, 0.1 / 1e6 * 100.0, 1.25 * 20.0 / 1e6]);
        assert_eq!(report["cost"]["total"].as_f64(), Some(dollars.iter().fold(0.0, |sum, cost| sum + cost)));
        assert_eq!(report.as_object().unwrap().len(), 6);
    }

    #[test]
    fn an_hour_in_the_cache_costs_twice_the_input() {
        let used = Used { cache_write: 30, cache_write_1h: Some(10), reasoning: Some(0), ..Used::default() };
        let report = used.report(&rates(json!({"input": 3, "cacheWrite": 4})));
        assert_eq!(report["cost"]["cacheWrite"].as_f64(), Some((4.0 * 20.0 + 3.0 * 2.0 * 10.0) / 1e6));
        assert_eq!((&report["cacheWrite1h"], &report["reasoning"]), (&json!(10), &json!(0)));
    }

    #[test]
    fn the_highest_tier_that_fits_counts() {
        let rates = rates(json!({"input": 1, "tiers": [
            {"inputTokensAbove": 500, "input": 3}, {"inputTokensAbove": 100, "input": 2}, {"inputTokensAbove": 1000, "input": 9},
        ]}));
        let rate = |input| {
            let report = Used { input, ..Used::default() }.report(&rates);
            (report["cost"]["input"].as_f64().unwrap() * 1e6 / float(input)).round()
        };
        assert_eq!([rate(100), rate(101), rate(501)], [1.0, 2.0, 3.0]);
    }

    #[test]
    fn without_rates_it_costs_nothing() {
        assert_eq!(Used { input: 5, ..Used::default() }.report(&Map::new())["cost"]["total"], json!(0));
    }

    #[test]
    fn numbers_add_up_in_each_field() {
        let (one, other) =
            (json!({"input": 1, "cost": {"total": 0.5}}), json!({"input": 2, "cost": {"total": 0.25}}));
        assert_eq!(add(one, other), json!({"input": 3, "cost": {"total": 0.75}}));
    }
}
