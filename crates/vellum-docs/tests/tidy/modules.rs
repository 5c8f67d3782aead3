//! Which module of a crate uses which: by its imports, by paths in its code, and by the methods
//! that it calls. Tests count for nothing.

use std::collections::{BTreeMap, BTreeSet};

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItem, Item, Type, UseTree};

use crate::files::Source;

/// Methods of the standard library: a call of one is no call of a method of ours by this name.
const COMMON: [&str; 28] = [
    "as_ref", "begin", "clone", "contains", "end", "first", "get", "insert", "is_empty", "iter",
    "last", "len", "load", "lock", "max", "min", "new", "next", "open", "position", "read",
    "remove", "set", "start", "store", "take", "with", "write",
];

/// One module: a file.
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) items: Vec<Item>,
    /// Paths that it imports or writes out, as they are there.
    paths: Vec<Vec<String>>,
    /// Names that it only gives to others, and their meanings.
    given: BTreeMap<String, Vec<String>>,
    /// Types that it defines.
    types: BTreeSet<String>,
    /// Its methods of other modules' types.
    methods: Vec<(String, String)>,
    calls: BTreeSet<String>,
}

/// The modules of one crate by their paths; the root is the empty one.
pub(crate) struct Crate {
    pub(crate) modules: BTreeMap<String, Module>,
}

pub(crate) type Arrows = BTreeMap<String, BTreeSet<String>>;

impl Crate {
    /// The crate whose sources are below `crates/NAME/src/`.
    pub(crate) fn read(name: &str) -> Crate {
        let base = format!("crates/{name}/src/");
        let sources = Source::below(&base).into_iter().filter(|source| !is_test(&source.name));
        let module = |source: Source| (path_of(&source.name[base.len()..]), Module::parse(source));
        Crate { modules: sources.map(module).collect() }
    }

    /// The modules that each module uses by name.
    pub(crate) fn imports(&self) -> Arrows {
        let used = |(path, module): (&String, &Module)| {
            let named = module.paths.iter().filter_map(|named| self.resolve(path, named, 0));
            (path.clone(), named.filter(|used| used != path && !used.is_empty()).collect())
        };
        self.modules.iter().filter(|(path, _)| !path.is_empty()).map(used).collect()
    }

    /// The same, with the modules whose methods a module calls, where no import shows it: those of
    /// a type that another module defines. Those of `face`, which nothing below has, do not count,
    /// and nothing calls what lies in a higher room of `rooms`.
    pub(crate) fn uses(&self, face: &str, rooms: &[&str]) -> Arrows {
        let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let own = module.methods.iter().filter(|(of, _)| of != face);
            own.for_each(|(_, name)| homes.entry(name).or_default().push(path));
        }
        let room =
            |path: &str| rooms.iter().position(|room| path.split("::").next() == Some(*room));
        let mut arrows = self.imports();
        for (path, module) in &self.modules {
            for call in module.calls.iter().filter(|call| !COMMON.contains(&call.as_str())) {
                if let Some([home]) = homes.get(call.as_str()).map(Vec::as_slice)
                    && home != path
                    && room(home) <= room(path)
                    && let Some(used) = arrows.get_mut(path)
                {
                    used.insert((*home).to_string());
                }
            }
        }
        arrows
    }

    /// The module in which a path of the module `from` ends.
    fn resolve(&self, from: &str, path: &[String], depth: usize) -> Option<String> {
        let mut at: Vec<&str> = from.split("::").filter(|part| !part.is_empty()).collect();
        let mut rest = &path[1..];
        match path.first()?.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            first if self.modules.contains_key(&below(from, first)) => rest = path,
            _ => return None,
        }
        while let Some(part) = rest.first() {
            let deeper = below(&at.join("::"), part);
            match self.modules.contains_key(&deeper) {
                true => at.push(part),
                false if part == "super" => drop(at.pop()),
                false => break,
            }
            rest = &rest[1..];
        }
        let module = at.join("::");
        let given = rest.first().and_then(|name| self.modules.get(&module)?.given.get(name));
        match given {
            Some(target) if depth < 8 => self.resolve(&module, target, depth + 1).or(Some(module)),
            _ => Some(module),
        }
    }
}

/// The modules from which arrows lead back to them.
pub(crate) fn in_circles(arrows: &Arrows) -> Vec<&str> {
    arrows.keys().map(String::as_str).filter(|start| leads_back(arrows, start)).collect()
}

/// A way from a module back to it, to show in a report.
pub(crate) fn way_back(arrows: &Arrows, start: &str) -> Option<Vec<String>> {
    let mut ways = std::collections::VecDeque::from([vec![start.to_string()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in arrows.get(way.last()?).into_iter().flatten() {
            if next == start {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push_back(way.iter().cloned().chain([next.clone()]).collect());
            }
        }
    }
    None
}

fn leads_back(arrows: &Arrows, start: &str) -> bool {
    way_back(arrows, start).is_some()
}

fn below(module: &str, part: &str) -> String {
    if module.is_empty() { part.to_string() } else { format!("{module}::{part}") }
}

/// The module that a file holds, as a path from the crate's root.
fn path_of(name: &str) -> String {
    let path = name.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" || path == "main" { String::new() } else { path.replace('/', "::") }
}

/// Files with tests and models alone.
pub(crate) fn is_test(name: &str) -> bool {
    name.ends_with("tests.rs") || ["/model", "/weak"].iter().any(|part| name.contains(part))
}

/// Whether an item is for tests alone.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<proc_macro2::TokenStream>()
                .is_ok_and(|tokens| is_test_condition(&tokens.to_string()))
    })
}

fn is_test_condition(condition: &str) -> bool {
    condition == "test"
        || condition.starts_with("all (test")
        || condition.starts_with("all (loom , test")
}

impl Module {
    fn parse(source: Source) -> Module {
        let parsed = syn::parse_file(&source.text)
            .unwrap_or_else(|error| panic!("{}: {error}", source.name));
        let items = parsed.items.into_iter().filter(|item| !is_for_tests(attributes(item)));
        let mut module = Module {
            file: source.name,
            items: items.collect(),
            paths: Vec::new(),
            given: BTreeMap::new(),
            types: BTreeSet::new(),
            methods: Vec::new(),
            calls: BTreeSet::new(),
        };
        let items = std::mem::take(&mut module.items);
        let defined = items.iter().filter_map(|item| match item {
            Item::Struct(item) => Some(item.ident.to_string()),
            Item::Enum(item) => Some(item.ident.to_string()),
            _ => None,
        });
        module.types = defined.collect();
        items.iter().for_each(|item| module.visit_item(item));
        Module { items, ..module }
    }

    fn take_use(&mut self, prefix: &[String], tree: &UseTree, is_given: bool) {
        let path =
            |ident: &Ident| prefix.iter().cloned().chain([ident.to_string()]).collect::<Vec<_>>();
        let (name, path) = match tree {
            UseTree::Path(part) => return self.take_use(&path(&part.ident), &part.tree, is_given),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.take_use(prefix, tree, is_given));
            }
            UseTree::Glob(_) => (String::new(), prefix.to_vec()),
            UseTree::Name(name) if name.ident == "self" => (String::new(), prefix.to_vec()),
            UseTree::Name(name) => (name.ident.to_string(), path(&name.ident)),
            UseTree::Rename(name) => (name.rename.to_string(), path(&name.ident)),
        };
        if is_given {
            self.given.insert(name, path);
        } else {
            self.paths.push(path);
        }
    }
}

/// The name of a type, or of the target of a reference.
pub(crate) fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            path.path.segments.last().map_or(String::new(), |part| part.ident.to_string())
        }
        Type::Reference(reference) => type_name(&reference.elem),
        _ => String::new(),
    }
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A module does not use names that it only passes on.
        let is_given = !matches!(item.vis, syn::Visibility::Inherited);
        self.take_use(&[], &item.tree, is_given);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = type_name(&item.self_ty);
        let is_own = self.types.contains(&of);
        if item.trait_.is_none() && !is_own {
            let names = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) => Some((of.clone(), method.sig.ident.to_string())),
                _ => None,
            });
            self.methods.extend(names);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if !is_for_tests(&method.attrs) {
            visit::visit_impl_item_fn(self, method);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1 {
            self.paths.push(parts);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let parser = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = called.parse_body_with(parser) {
            let arguments: Vec<syn::Expr> = arguments.into_iter().collect();
            let mut inner = Calls::default();
            arguments.iter().for_each(|argument| inner.visit_expr(argument));
            self.calls.extend(inner.0);
        }
        visit::visit_macro(self, called);
    }
}

/// The methods that are called in the arguments of a macro.
#[derive(Default)]
struct Calls(BTreeSet<String>);

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }
}
