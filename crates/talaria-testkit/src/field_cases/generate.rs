//! `$gen` objects, which stand for values too large to write down.

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The value with every `$gen` object replaced by what it stands for.
///
/// # Errors
/// A generator is not known here.
pub fn expand(value: &Value) -> anyhow::Result<Value> {
    match value {
        Value::Array(items) => Ok(Value::Array(
            items.iter().map(expand).collect::<Result<_, _>>()?,
        )),
        Value::Object(members) if members.contains_key("$gen") => generate(value),
        Value::Object(members) => {
            let expand_member =
                |(key, member): (&String, &Value)| Ok((key.clone(), expand(member)?));
            Ok(Value::Object(
                members
                    .iter()
                    .map(expand_member)
                    .collect::<anyhow::Result<_>>()?,
            ))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

fn generate(generator: &Value) -> anyhow::Result<Value> {
    match generator["$gen"].as_str().unwrap_or_default() {
        "repeat" => {
            let unit = generator["unit"]
                .as_str()
                .context("`repeat` without `unit`")?;
            Ok(unit.repeat(count(generator)?).into())
        }
        "repeat_list" => {
            let item = expand(&generator["item"])?;
            Ok(vec![item; count(generator)?].into())
        }
        "concat" => {
            let parts = generator["parts"]
                .as_array()
                .context("`concat` without `parts`")?;
            let mut text = String::new();
            for part in parts {
                text.push_str(expand(part)?.as_str().context("a part is no string")?);
            }
            Ok(text.into())
        }
        other => bail!("no generator `{other}`"),
    }
}

fn count(generator: &Value) -> anyhow::Result<usize> {
    let count = generator["count"].as_u64().context("no `count`")?;
    Ok(usize::try_from(count)?)
}
