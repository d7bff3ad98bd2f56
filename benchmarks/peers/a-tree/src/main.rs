//! a-tree: an expression per filter, one event at a time from JSON text.

use a_tree::{ATree, AttributeDefinition};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead};
use std::time::{Duration, Instant};

const MANIFEST: &str = include_str!("../Cargo.toml");

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Integer,
    Float,
}

type Kinds = BTreeMap<String, Kind>;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let filters: Vec<Value> = read_lines(&arguments[1])
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events = read_lines(&arguments[2]);
    let warm_up = Duration::from_secs_f64(arguments[3].parse().unwrap());
    let limit = Duration::from_secs_f64(arguments[4].parse().unwrap());

    let start = Instant::now();
    let kinds = kinds_of(&filters);
    let definitions: Vec<AttributeDefinition> = kinds
        .iter()
        .map(|(name, kind)| match kind {
            Kind::Text => AttributeDefinition::string(name),
            Kind::Integer => AttributeDefinition::integer(name),
            Kind::Float => AttributeDefinition::float(name),
        })
        .collect();
    let mut tree: ATree<u64> = ATree::new(&definitions).unwrap();
    for filter in &filters {
        let expression = expression(&filter["tests"], &kinds);
        tree.insert(&filter["id"].as_u64().unwrap(), &expression).unwrap();
    }
    let build_seconds = start.elapsed().as_secs_f64();

    for _ in io::stdin().lock().lines() {
        pass(&tree, &kinds, &events, warm_up);
        let (mut spent, matches, seconds) = pass(&tree, &kinds, &events, limit);
        spent.sort_unstable();
        let micros = |at: usize| spent[at] as f64 / 1e3;
        println!(
            "{}",
            json!({
                "system": "a-tree",
                "version": version(),
                "filters": filters.len(),
                "build_seconds": build_seconds,
                "events": spent.len(),
                "matches": matches,
                "seconds": seconds,
                "us_per_event": seconds * 1e6 / spent.len() as f64,
                "p50_us": micros(spent.len() / 2),
                "p99_us": micros(spent.len() * 99 / 100),
            })
        );
    }
}

/// All events once, or as many as the time allows: nanoseconds of each, matches, seconds.
fn pass(tree: &ATree<u64>, kinds: &Kinds, events: &[String], limit: Duration) -> (Vec<u64>, usize, f64) {
    let mut spent = Vec::with_capacity(events.len());
    let mut matches = 0;
    let start = Instant::now();
    for event in events {
        let begun = Instant::now();
        if begun - start > limit {
            break;
        }
        matches += found(tree, kinds, event);
        spent.push(begun.elapsed().as_nanos() as u64);
    }
    (spent, matches, start.elapsed().as_secs_f64())
}

fn found(tree: &ATree<u64>, kinds: &Kinds, line: &str) -> usize {
    let event: Value = serde_json::from_str(line).unwrap();
    let mut builder = tree.make_event();
    for (name, value) in event.as_object().unwrap() {
        match (kinds.get(name), value) {
            (Some(Kind::Text), Value::String(text)) => builder.with_string(name, text).unwrap(),
            (Some(Kind::Integer), Value::Number(number)) => {
                builder.with_integer(name, number.as_i64().unwrap()).unwrap()
            }
            (Some(Kind::Float), Value::Number(number)) => {
                let (digits, scale) = decimal(&number.to_string());
                builder.with_float(name, digits, scale).unwrap()
            }
            _ => {}
        }
    }
    tree.search(&builder.build().unwrap()).unwrap().matches().len()
}

/// The kind of each attribute, from the tests on it: whole numbers everywhere make an integer.
fn kinds_of(filters: &[Value]) -> Kinds {
    let mut kinds = Kinds::new();
    for test in filters.iter().flat_map(|filter| filter["tests"].as_array().unwrap()) {
        let values = ["value", "low", "high"].map(|name| &test[name]);
        let kind = if test["value"].is_string() {
            Kind::Text
        } else if values.iter().all(|value| value.is_null() || value.is_i64()) {
            Kind::Integer
        } else {
            Kind::Float
        };
        let name = test["attribute"].as_str().unwrap().to_string();
        let known = kinds.entry(name).or_insert(kind);
        if kind == Kind::Float {
            *known = kind;
        }
    }
    kinds
}

fn expression(tests: &Value, kinds: &Kinds) -> String {
    let mut parts = Vec::new();
    for test in tests.as_array().unwrap() {
        let name = test["attribute"].as_str().unwrap();
        match test["op"].as_str().unwrap() {
            "=" if test["value"].is_string() => {
                parts.push(format!("{name} = \"{}\"", test["value"].as_str().unwrap()))
            }
            "=" => parts.push(format!("{name} = {}", literal(&test["value"], kinds[name]))),
            "between" => {
                for (side, sign) in [("low", ">="), ("high", "<=")] {
                    if !test[side].is_null() {
                        parts.push(format!("{name} {sign} {}", literal(&test[side], kinds[name])));
                    }
                }
            }
            other => panic!("a-tree can't test {other}"),
        }
    }
    parts.join(" and ")
}

fn literal(value: &Value, kind: Kind) -> String {
    let text = value.to_string();
    if kind == Kind::Float && !text.contains('.') {
        return format!("{text}.0");
    }
    text
}

/// 12.345 as (12345, 3).
fn decimal(text: &str) -> (i64, u32) {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    (format!("{whole}{part}").parse().unwrap(), part.len() as u32)
}

fn read_lines(path: &str) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

fn version() -> &'static str {
    let line = MANIFEST.lines().find(|line| line.starts_with("a-tree = ")).unwrap();
    line.trim_start_matches("a-tree = \"=").trim_end_matches('"')
}
