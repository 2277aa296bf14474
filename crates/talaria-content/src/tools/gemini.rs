//! Schemas as Gemini takes them: a few keywords of OpenAPI 3.0, no references.

use serde_json::{Map, Value, json};

use super::keywords::{is_null, well_shaped};
use super::plain::folded;
use super::references::{References, merge};

/// Schemas written for one tool; references to references may multiply without end.
const MAX_SCHEMAS: usize = 2_000;
/// Keywords that are handed on as they are.
const KEPT: [&str; 11] = [
    "title",
    "default",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "pattern",
];
/// Keywords that tell the type of a value by its shape.
const SHAPES: [&str; 3] = ["properties", "items", "prefixItems"];
/// Formats by type; any other is refused.
const FORMATS: [(&str, &[&str]); 3] = [
    ("string", &["date-time", "enum"]),
    ("number", &["float", "double"]),
    ("integer", &["int32", "int64"]),
];

/// The parameters of a function; none where it takes nothing.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let schema = well_shaped(schema);
    let mut writer = Writer {
        references: References::new(&schema),
        budget: MAX_SCHEMAS,
        open: Vec::new(),
    };
    let written = writer.write(&folded(&schema));
    let has_properties = written
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty());
    has_properties.then_some(Value::Object(written))
}

struct Writer<'a> {
    references: References<'a>,
    budget: usize,
    /// References that are being written; one among them is a recursion.
    open: Vec<String>,
}

impl Writer<'_> {
    fn write(&mut self, schema: &Value) -> Map<String, Value> {
        let Some(budget) = self.budget.checked_sub(1) else {
            return typed("object");
        };
        self.budget = budget;
        let Value::Object(schema) = schema else {
            return typed("string");
        };
        let depth = self.open.len();
        let written = match self.resolved(schema) {
            Some(whole) => self.write_whole(&whole),
            None => self.cut(schema),
        };
        self.open.truncate(depth);
        written
    }

    /// The schema with what its references and `allOf` say; `None` for a recursion.
    fn resolved(&mut self, schema: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut whole = schema.clone();
        while let Some(reference) = whole.remove("$ref") {
            let reference = reference.as_str().unwrap_or_default().to_owned();
            if self.open.contains(&reference) {
                return None;
            }
            let target = self.references.find(&reference).and_then(Value::as_object);
            if let Some(target) = target {
                merge(&mut whole, target);
            }
            self.open.push(reference);
        }
        if let Some(Value::Array(branches)) = whole.remove("allOf") {
            for branch in branches.iter().filter_map(Value::as_object) {
                if let Some(branch) = self.resolved(branch) {
                    merge(&mut whole, &branch);
                }
            }
        }
        Some(whole)
    }

    /// In place of what would go on without end: its type and what is said of it.
    fn cut(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|name| self.references.find(name));
        let said = |key: &str| {
            let own = schema.get(key).and_then(Value::as_str);
            own.or_else(|| target?.get(key)?.as_str())
        };
        let mut written = typed(said("type").unwrap_or("object"));
        if written.get("type").is_some_and(|name| name == "array") {
            written.insert("items".to_owned(), json!({ "type": "object" }));
        }
        if let Some(text) = said("description") {
            written.insert("description".to_owned(), Value::from(text));
        }
        written
    }

    fn write_whole(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut types = types(schema);
        let had = types.len();
        types.retain(|name| name != "null");
        let mut nullable =
            types.len() < had || schema.get("nullable").is_some_and(|value| value == true);
        let mut branches: Vec<Value> = ["anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten()
            .cloned()
            .collect();
        let had = branches.len();
        branches.retain(|branch| !is_null(branch));
        nullable |= branches.len() < had;
        if let Some(values) = all_constants(&branches) {
            let mut schema = without_unions(schema);
            schema.insert("enum".to_owned(), values);
            return self.write_by_type(&schema, types, nullable);
        }
        match branches.as_slice() {
            [] => self.write_by_type(schema, types, nullable),
            [Value::Object(only)] => {
                let mut whole = without_unions(schema);
                if types.len() != 1 {
                    whole.remove("type");
                }
                let depth = self.open.len();
                let written = match self.resolved(only) {
                    Some(only) => {
                        merge(&mut whole, &only);
                        self.write_whole(&whole)
                    }
                    None => self.cut(only),
                };
                self.open.truncate(depth);
                marked(written, nullable)
            }
            _ => self.write_union(schema, &branches, nullable),
        }
    }

    /// A schema without unions: one for each type that its values can have.
    fn write_by_type(
        &mut self,
        schema: &Map<String, Value>,
        mut types: Vec<String>,
        nullable: bool,
    ) -> Map<String, Value> {
        let values = constants_of(schema);
        if types.is_empty() && !SHAPES.iter().any(|keyword| schema.contains_key(*keyword)) {
            types = types_of_values(&values);
        }
        let of_values: Vec<String> = types
            .iter()
            .filter(|name| values.iter().any(|value| is_of_type(value, name)))
            .cloned()
            .collect();
        if !of_values.is_empty() {
            types = of_values;
        }
        if types.len() < 2 {
            return marked(self.write_one(schema, &types), nullable);
        }
        let plain = without_unions(schema);
        let branches: Vec<Value> = types
            .iter()
            .map(|name| {
                let mut branch = plain.clone();
                branch.insert("type".to_owned(), Value::from(name.as_str()));
                Value::Object(branch)
            })
            .collect();
        self.write_union(&Map::new(), &branches, nullable)
    }

    /// A union stands alone: what is said beside it is said in each of its branches.
    fn write_union(
        &mut self,
        around: &Map<String, Value>,
        branches: &[Value],
        nullable: bool,
    ) -> Map<String, Value> {
        let beside = ["description", "title"];
        let mut written: Vec<Value> = Vec::new();
        for branch in branches {
            let mut one = self.write(branch);
            for key in beside {
                if let (false, Some(text)) = (one.contains_key(key), around.get(key)) {
                    one.insert(key.to_owned(), text.clone());
                }
            }
            let one = Value::Object(marked(one, nullable));
            if !written.contains(&one) {
                written.push(one);
            }
        }
        match written.as_slice() {
            [Value::Object(only)] => only.clone(),
            _ => Map::from_iter([("anyOf".to_owned(), Value::Array(written))]),
        }
    }

    /// A schema of one type, without unions.
    fn write_one(&mut self, schema: &Map<String, Value>, types: &[String]) -> Map<String, Value> {
        let name = match types.first() {
            Some(name) => name.as_str(),
            None if schema.contains_key("properties") => "object",
            None if schema.contains_key("items") || schema.contains_key("prefixItems") => "array",
            None => "string",
        };
        let mut written = typed(name);
        let mut description = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        match allowed(schema, name) {
            Allowed::Anything => {}
            Allowed::Texts(texts) => {
                written.insert("enum".to_owned(), Value::Array(texts));
            }
            Allowed::Told(values) => {
                let separator = if description.is_empty() { "" } else { " " };
                description.push_str(&format!("{separator}(one of: {values})"));
            }
        }
        if !description.is_empty() {
            written.insert("description".to_owned(), Value::from(description));
        }
        if let Some(format) = schema.get("format")
            && FORMATS.iter().any(|(of, known)| {
                *of == name && format.as_str().is_some_and(|it| known.contains(&it))
            })
        {
            written.insert("format".to_owned(), format.clone());
        }
        for key in KEPT {
            if let Some(value) = schema.get(key) {
                written.insert(key.to_owned(), value.clone());
            }
        }
        match name {
            "object" => self.write_properties(schema, &mut written),
            "array" => {
                let items = self.write_items(schema);
                written.insert("items".to_owned(), Value::Object(items));
            }
            _ => {}
        }
        written
    }

    fn write_properties(&mut self, schema: &Map<String, Value>, written: &mut Map<String, Value>) {
        let Some(Value::Object(properties)) = schema.get("properties") else {
            return;
        };
        let mut kept = Map::new();
        for (name, property) in properties {
            if *property != Value::Bool(false) {
                kept.insert(name.clone(), Value::Object(self.write(property)));
            }
        }
        let required: Vec<&Value> = match schema.get("required") {
            Some(Value::Array(names)) => names
                .iter()
                .filter(|name| name.as_str().is_some_and(|name| kept.contains_key(name)))
                .collect(),
            Some(_) | None => Vec::new(),
        };
        if !required.is_empty() {
            written.insert("required".to_owned(), json!(required));
        }
        if !kept.is_empty() {
            written.insert("properties".to_owned(), Value::Object(kept));
        }
    }

    fn write_items(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::Array(tuple)) = schema.get("prefixItems") {
            return self.write_union(&Map::new(), tuple, false);
        }
        match schema.get("items") {
            Some(items @ Value::Object(members)) if !members.is_empty() => self.write(items),
            Some(_) | None => {
                let lists = constants_of(schema);
                let items: Vec<Value> = lists
                    .iter()
                    .filter_map(Value::as_array)
                    .flatten()
                    .cloned()
                    .collect();
                match types_of_values(&items).as_slice() {
                    [only] => typed(only),
                    _ => typed("string"),
                }
            }
        }
    }
}

fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(name))])
}

fn marked(mut schema: Map<String, Value>, nullable: bool) -> Map<String, Value> {
    if nullable {
        match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
            Some(branches) => {
                for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
                    branch.insert("nullable".to_owned(), Value::Bool(true));
                }
            }
            None => {
                schema.insert("nullable".to_owned(), Value::Bool(true));
            }
        }
    }
    schema
}

fn types(schema: &Map<String, Value>) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect(),
        Some(_) | None => Vec::new(),
    }
}

fn without_unions(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    schema.remove("anyOf");
    schema.remove("oneOf");
    schema
}

/// The values of branches that are nothing but values.
fn all_constants(branches: &[Value]) -> Option<Value> {
    if branches.is_empty() {
        return None;
    }
    let mut values = Vec::new();
    for branch in branches {
        let held = constants_of(branch.as_object()?);
        if held.is_empty() {
            return None;
        }
        values.extend(held);
    }
    Some(Value::Array(values))
}

/// What `const` and `enum` allow, null apart.
fn constants_of(schema: &Map<String, Value>) -> Vec<Value> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let values = listed.into_iter().flatten().chain(schema.get("const"));
    values.filter(|value| !value.is_null()).cloned().collect()
}

/// How the values that a schema allows are said where it is written as one type.
enum Allowed {
    Anything,
    /// Only texts can be enumerated there, and no empty one.
    Texts(Vec<Value>),
    /// In words.
    Told(String),
}

fn allowed(schema: &Map<String, Value>, name: &str) -> Allowed {
    let values = constants_of(schema);
    let mut fitting: Vec<Value> = values.clone();
    fitting.retain(|value| is_of_type(value, name));
    if fitting.is_empty() {
        // The server means its values all the same: numbers that are written as text.
        fitting = values;
    }
    if fitting.is_empty() {
        return Allowed::Anything;
    }
    if name == "string" && fitting.iter().all(Value::is_string) {
        fitting.retain(|value| value != "");
        return if fitting.is_empty() {
            Allowed::Anything
        } else {
            Allowed::Texts(fitting)
        };
    }
    let words: Vec<String> = fitting.iter().map(Value::to_string).collect();
    Allowed::Told(words.join(", "))
}

/// The types that values have, in their order; one alone for all numbers.
fn types_of_values(values: &[Value]) -> Vec<String> {
    let has_fraction = values
        .iter()
        .any(|value| value.is_number() && !is_of_type(value, "integer"));
    let mut types: Vec<String> = Vec::new();
    for value in values {
        let name = match value {
            Value::Null => continue,
            Value::Bool(_) => "boolean",
            Value::Number(_) if has_fraction => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !types.iter().any(|known| known == name) {
            types.push(name.to_owned());
        }
    }
    types
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => {
            let is_whole = !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
