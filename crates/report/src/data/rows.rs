//! The rows of any answer as CSV: one form for what has no columns of its own. It is the JSON document, one object a line.

use super::written::{field, written};
use serde_json::{Map, Value};
use std::io;

/// The objects in the lists at `path` of `document` as CSV, each a line: `["explanations", "path"]` are those in the lists `path` of all
/// objects in the list `explanations`. What is within an object has a column named by its way, such as `ratio.median`; lists are left out,
/// but for those of numbers and texts. A row begins with what names the objects around it.
pub fn rows(document: &Value, path: &[&str]) -> io::Result<Vec<u8>> {
    let mut found: Vec<Map<String, Value>> = Vec::new();
    collect(document, path, &Map::new(), &mut found);
    let mut columns: Vec<&String> = Vec::new();
    for name in found.iter().flat_map(Map::keys) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|name| field(name)))?;
    for row in &found {
        writer
            .write_record(columns.iter().map(|name| field(&row.get(*name).map(cell).unwrap_or_default())))?;
    }
    written(writer)
}

/// The names by which an object is known to what is in it.
const NAMES: [&str; 4] = ["case", "cases", "flow", "scenario"];

fn collect(value: &Value, path: &[&str], around: &Map<String, Value>, found: &mut Vec<Map<String, Value>>) {
    match (value, path) {
        (Value::Array(all), path) => all.iter().for_each(|one| collect(one, path, around, found)),
        (Value::Object(object), [next, further @ ..]) => {
            let mut around = around.clone();
            for name in NAMES.iter().filter(|name| *name != next) {
                if let Some(value) = object.get(*name) {
                    flatten(name, value, &mut around);
                }
            }
            if let Some(value) = object.get(*next) {
                collect(value, further, &around, found);
            }
        }
        (Value::Object(object), []) => {
            let mut row = around.clone();
            object.iter().for_each(|(name, value)| flatten(name, value, &mut row));
            found.push(row);
        }
        _ => {}
    }
}

/// Puts `value` into `row` under `name`, and what is within it under longer names.
fn flatten(name: &str, value: &Value, row: &mut Map<String, Value>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(inner, value)| flatten(&format!("{name}.{inner}"), value, row));
        }
        Value::Array(all) if all.iter().any(|one| one.is_object() || one.is_array()) => {}
        other => {
            row.insert(name.to_owned(), other.clone());
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_become_lines_behind_what_names_those_around_them() {
        let document = serde_json::json!({ "explanations": [
            { "case": { "spec": "pipe", "size": 1 }, "path": [{ "of": "read", "ns": { "mean": 2.5, "interval": [2, 3] } }, { "of": "a, b" }] },
            { "case": { "spec": "tcp" }, "path": [] },
            { "case": { "spec": "udp" }, "path": [{ "of": "send", "parts": [{ "x": 1 }], "is": null }] },
        ] });
        let text = String::from_utf8(rows(&document, &["explanations", "path"]).unwrap()).unwrap();
        insta::assert_snapshot!(text, @r#"
        case.size,case.spec,ns.interval,ns.mean,of,is
        1,pipe,2 3,2.5,read,
        1,pipe,,,"a, b",
        ,udp,,,send,
        "#);
        assert_eq!(rows(&serde_json::json!([]), &[]).unwrap(), b"\"\"\n");
        // What others wrote is text in a spreadsheet, and a line is a line.
        let evil = serde_json::json!([{ "=name": "=cmd()\n", "n": -1.5 }]);
        assert_eq!(rows(&evil, &[]).unwrap(), b"'=name,n\n'=cmd()\\n,-1.5\n");
    }
}
