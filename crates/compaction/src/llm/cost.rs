//! What calls used and what that costs, in Pi's format, added up.

use serde_json::{Number, Value};

use super::{Answer, Failure, Reply};

/// What the call of an answer used, in Pi's format.
pub fn usage(answer: &Answer) -> Option<&Value> {
    answer.as_ref().map_or_else(|failure| failure.usage.as_ref(), |reply| reply.usage.as_ref())
}

/// Adds it to `total`.
pub(crate) fn count_usage(total: &mut Option<Value>, answer: &Answer) {
    *total = total.take().into_iter().chain(usage(answer).cloned()).reduce(add);
}

/// The answer with `usage` as what its call used.
pub(super) fn reporting(answer: Answer, usage: Option<Value>) -> Answer {
    match answer {
        Ok(reply) => Ok(Reply { usage, ..reply }),
        Err(failure) => Err(Failure { usage, ..failure }),
    }
}

/// The field-wise sum: numbers add, objects merge, anything else is taken from the first that has it.
fn add(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (key, value) in other {
                let mine = one.remove(&key).unwrap_or(Value::Null);
                one.insert(key, add(mine, value));
            }
            Value::Object(one)
        }
        (Value::Number(one), Value::Number(other)) => Value::Number(sum(one, &other)),
        (Value::Null, other) => other,
        (one, _) => one,
    }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_add_up_in_each_field() {
        let (one, other) =
            (json!({"input": 1, "cost": {"total": 0.5}}), json!({"input": 2, "cost": {"total": 0.25}}));
        assert_eq!(add(one, other), json!({"input": 3, "cost": {"total": 0.75}}));
    }
}
