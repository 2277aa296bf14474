//! Lists and objects against the keywords for their members.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::words::{At, listed};
use super::{Walk, count};

/// Items of a list that shall differ.
const MOST_COMPARED: usize = 200;

impl Walk<'_> {
    pub(super) fn array(
        &mut self,
        schema: &Map<String, Value>,
        items: &[Value],
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let (least, most) = (count(schema, "minItems"), count(schema, "maxItems"));
        let mut fits = self.within(items.len(), least, most, "items", at);
        let listed = schema.get("items").and_then(Value::as_array);
        let first = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .or(listed);
        let rest = if listed.is_some() {
            schema.get("additionalItems")
        } else {
            schema.get("items")
        };
        for (index, item) in items.iter().enumerate() {
            let own = first.and_then(|first| first.get(index));
            if let Some(schema) = own.or(rest) {
                fits &= self.value(schema, item, at.index(index), depth + 1);
            }
            if self.exhausted {
                return true;
            }
        }
        if let Some(wanted) = schema.get("contains")
            && count(schema, "minContains") != Some(0)
        {
            self.silent += 1;
            let found = items
                .iter()
                .any(|item| self.value(wanted, item, at, depth + 1));
            self.silent -= 1;
            if !found {
                fits &= self.misfit(at, || "lacks an item of the kind it must have".to_owned());
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && items.len() <= MOST_COMPARED {
            let mut rest = items;
            while let [first, others @ ..] = rest {
                if others.iter().any(|other| self.same(first, other)) {
                    return self.misfit(at, || "must not hold an item twice".to_owned());
                }
                rest = others;
            }
        }
        fits
    }

    pub(super) fn object(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        at: At<'_>,
        depth: usize,
    ) -> bool {
        let mut fits = self.required(schema, members, at);
        let (least, most) = (
            count(schema, "minProperties"),
            count(schema, "maxProperties"),
        );
        fits &= self.within(members.len(), least, most, "members", at);
        let properties = schema.get("properties").and_then(Value::as_object);
        let by_pattern = schema.get("patternProperties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let required: Option<BTreeSet<&str>> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect());
        for (name, member) in members {
            if self.exhausted {
                return true;
            }
            let here = at.key(name);
            let mut is_known = false;
            if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                is_known = true;
                // Models write null for what they leave out.
                if !member.is_null()
                    || required
                        .as_ref()
                        .is_some_and(|names| names.contains(name.as_str()))
                {
                    fits &= self.value(schema, member, here, depth + 1);
                }
            }
            for (pattern, schema) in by_pattern.into_iter().flatten() {
                match self.patterns.get(pattern) {
                    Some(Some(_)) if self.matches(pattern, name) => {
                        is_known = true;
                        fits &= self.value(schema, member, here, depth + 1);
                    }
                    Some(Some(_)) => {}
                    // Nobody can tell whom it means.
                    Some(None) | None => is_known = true,
                }
            }
            match others {
                Some(Value::Bool(false)) if !is_known => {
                    fits &= self.misfit(here, || unknown(properties));
                }
                Some(schema) if !is_known => {
                    fits &= self.value(schema, member, here, depth + 1);
                }
                Some(_) | None => {}
            }
            if let Some(names) = schema.get("propertyNames") {
                let name = Value::String(name.clone());
                fits &= self.value(names, &name, here, depth + 1);
            }
        }
        fits
    }

    fn required(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        at: At<'_>,
    ) -> bool {
        let always = schema.get("required").into_iter();
        let dependent = schema.get("dependentRequired").and_then(Value::as_object);
        let dependent = dependent.into_iter().flatten();
        let because = dependent.filter(|(name, _)| members.contains_key(*name));
        let lists = always.chain(because.map(|(_, list)| list));
        let names = lists.filter_map(Value::as_array).flatten();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fits = true;
        for name in names.filter_map(Value::as_str) {
            if !self.burn(1) {
                return true;
            }
            // What has a default may be left out, although schemas made from types require it.
            let has_default = properties
                .and_then(|properties| properties.get(name))
                .is_some_and(|property| property.get("default").is_some());
            if !members.contains_key(name) && !has_default {
                fits = self.misfit(at.key(name), || "is required and missing".to_owned());
            }
        }
        fits
    }
}

fn unknown(properties: Option<&Map<String, Value>>) -> String {
    match properties.filter(|properties| !properties.is_empty()) {
        Some(properties) => {
            let names: Vec<_> = properties.keys().cloned().collect();
            format!("is not known; known are {}", listed(names.into_iter()))
        }
        None => "is not known; there are none".to_owned(),
    }
}
