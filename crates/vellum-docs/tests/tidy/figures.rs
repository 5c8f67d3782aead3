//! Figures of the structure that only sink: each has a ceiling, which is its last value. A figure
//! above it is a fault; one below it asks for a lower ceiling.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Fields, ImplItem, Item, Visibility};

use crate::files::{Source, named, root};
use crate::modules::{self, Crate, Module, is_for_tests, is_test, type_name};

/// The object that all handles of one log in one process share, and the types that may do more with
/// it.
const HANDLES: [&str; 3] = ["Core", "Writer", "Prepare"];
/// Calls that change an atomic.
const CHANGES: [&str; 10] = [
    "store",
    "swap",
    "compare_exchange",
    "compare_exchange_weak",
    "fetch_add",
    "fetch_sub",
    "fetch_max",
    "fetch_min",
    "fetch_or",
    "fetch_and",
];

/// A figure and where it comes from.
pub(crate) type Figure = (usize, Vec<String>);

fn figure(places: Vec<String>) -> Figure {
    (places.len(), places)
}

/// Modules of a crate that use each other in a circle.
pub(crate) fn import_circles(name: &str) -> Figure {
    let arrows = Crate::read(name).imports();
    figure(ways(&arrows, modules::in_circles(&arrows)))
}

/// Files of `log/` that use each other in a circle, by imports and by calls.
pub(crate) fn circles_of_log(library: &Crate) -> Figure {
    let arrows = library.uses("Log", &crate::ROOMS);
    let found = modules::in_circles(&arrows).into_iter().filter(|path| path.starts_with("log"));
    figure(ways(&arrows, found.collect()))
}

fn ways(arrows: &modules::Arrows, found: Vec<&str>) -> Vec<String> {
    let way = |start: &&str| modules::way_back(arrows, start).unwrap_or_default().join(" -> ");
    found.iter().map(way).collect()
}

fn impls_of<'a>(
    library: &'a Crate,
    names: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a syn::ItemImpl)> {
    library.modules.values().flat_map(move |module| {
        module.items.iter().filter_map(move |item| match item {
            Item::Impl(item) if names.contains(&type_name(&item.self_ty).as_str()) => {
                Some((module.file.as_str(), item))
            }
            _ => None,
        })
    })
}

fn methods_of(
    library: &Crate,
    names: &[&str],
    is_counted: impl Fn(&syn::ImplItemFn) -> bool,
) -> Vec<String> {
    let impls = impls_of(library, names).filter(|(_, item)| item.trait_.is_none());
    impls
        .flat_map(|(file, item)| item.items.iter().map(move |item| (file, item)))
        .filter_map(|(file, item)| match item {
            ImplItem::Fn(method) if !is_for_tests(&method.attrs) && is_counted(method) => {
                Some(format!("{file}: {}", method.sig.ident))
            }
            _ => None,
        })
        .collect()
}

/// Methods of the shared handles.
pub(crate) fn handle_methods(library: &Crate) -> Figure {
    figure(methods_of(library, &HANDLES, |_| true))
}

/// Files with methods of the shared handles.
pub(crate) fn handle_files(library: &Crate) -> Figure {
    let files: BTreeSet<String> = handle_methods(library)
        .1
        .iter()
        .map(|method| method.split(':').next().unwrap_or_default().to_string())
        .collect();
    figure(files.into_iter().collect())
}

/// Shared handles that pass themselves off as another.
pub(crate) fn handle_derefs(library: &Crate) -> Figure {
    let is_deref = |item: &&(&str, &syn::ItemImpl)| {
        item.1.trait_.as_ref().is_some_and(|(path, _)| path_name(path) == "Deref")
    };
    let found = impls_of(library, &HANDLES).filter(|item| is_deref(&item));
    figure(found.map(|(file, _)| file.to_string()).collect())
}

fn path_name(path: &syn::Path) -> String {
    path.segments.last().map_or(String::new(), |part| part.ident.to_string())
}

/// Fields of the one object.
pub(crate) fn core_fields(library: &Crate) -> Figure {
    let fields =
        library.modules.values().flat_map(|module| &module.items).filter_map(|item| match item {
            Item::Struct(item) if item.ident == "Core" => match &item.fields {
                Fields::Named(fields) => Some(&fields.named),
                _ => None,
            },
            _ => None,
        });
    figure(fields.flatten().filter_map(|field| Some(field.ident.as_ref()?.to_string())).collect())
}

/// Public methods of a type.
pub(crate) fn public_methods(library: &Crate, name: &str) -> Figure {
    let is_public = |method: &syn::ImplItemFn| {
        let is_hidden = method.attrs.iter().any(|attribute| attribute.path().is_ident("doc") && {
            matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "hidden")
        });
        matches!(method.vis, Visibility::Public(_)) && !is_hidden
    };
    figure(methods_of(library, &[name], is_public))
}

/// The names of the public methods of a type.
pub(crate) fn method_names(library: &Crate, name: &str) -> Vec<String> {
    let (_, places) = public_methods(library, name);
    places.iter().filter_map(|place| place.rsplit([':', ' ']).next()).map(String::from).collect()
}

/// Names at the root of the library.
pub(crate) fn root_names(library: &Crate) -> Figure {
    let mut names = Vec::new();
    for item in &library.modules[""].items {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                leaves(&item.tree, &mut names)
            }
            Item::Mod(item) if matches!(item.vis, Visibility::Public(_)) => {
                names.push(item.ident.to_string())
            }
            _ => {}
        }
    }
    figure(names)
}

fn leaves(tree: &syn::UseTree, names: &mut Vec<String>) {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, names),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, names)),
        syn::UseTree::Name(name) => names.push(name.ident.to_string()),
        syn::UseTree::Rename(name) => names.push(name.rename.to_string()),
        _ => {}
    }
}

/// The rooms that meet both layouts.
fn asks_layouts(path: &str) -> bool {
    ["log", "segment", "files", "restore"].iter().any(|room| path.starts_with(room))
}

/// File and line of what `lines` finds in the modules that are looked at.
fn places(
    crates: &[Crate],
    is_looked_at: impl Fn(&str) -> bool,
    lines: impl Fn(&Module) -> Vec<usize>,
) -> Vec<String> {
    let modules = crates.iter().flat_map(|one| &one.modules);
    let modules = modules.filter(|(path, _)| is_looked_at(path));
    let found = modules.flat_map(|(_, module)| {
        lines(module).into_iter().map(move |line| format!("{}:{line}", module.file))
    });
    found.collect()
}

/// Places of `log/`, `segment/` and `files/` that name a layout.
pub(crate) fn layouts(crates: &[Crate]) -> Figure {
    struct Layouts(Vec<usize>);
    impl<'ast> Visit<'ast> for Layouts {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            if path.segments.len() > 1 && path.segments[path.segments.len() - 2].ident == "Layout" {
                self.0.push(path.segments[0].ident.span().start().line);
            }
            visit::visit_path(self, path);
        }
        fn visit_macro(&mut self, called: &'ast syn::Macro) {
            let text = called.tokens.to_string();
            self.0.extend(
                text.matches("Layout :: ")
                    .map(|_| called.path.segments[0].ident.span().start().line),
            );
        }
    }
    figure(places(crates, asks_layouts, |module| {
        let mut found = Layouts(Vec::new());
        module.items.iter().for_each(|item| found.visit_item(item));
        found.0
    }))
}

/// Files of `log/`, `segment/` and `files/` that name a layout.
pub(crate) fn layout_files(crates: &[Crate]) -> Figure {
    let (_, places) = layouts(crates);
    let name = |place: &String| place.split(':').next().unwrap_or_default().to_string();
    figure(places.iter().map(name).collect::<BTreeSet<String>>().into_iter().collect())
}

/// Places of `log/`, `segment/` and `files/` that ask whether records have frames, which is nearly
/// the name of a layout.
pub(crate) fn frame_questions(crates: &[Crate]) -> Figure {
    struct Questions(Vec<usize>);
    impl<'ast> Visit<'ast> for Questions {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            if call.method == "has_frames" {
                self.0.push(call.method.span().start().line);
            }
            visit::visit_expr_method_call(self, call);
        }
    }
    figure(places(crates, asks_layouts, |module| {
        let mut found = Questions(Vec::new());
        module.items.iter().for_each(|item| found.visit_item(item));
        found.0
    }))
}

/// Changes of shared words by code that does not own them.
pub(crate) fn foreign_stores(library: &Crate) -> Figure {
    struct Stores<'a>(Vec<usize>, &'a BTreeSet<String>);
    impl<'ast> Visit<'ast> for Stores<'_> {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            let is_change = CHANGES.contains(&call.method.to_string().as_str());
            let is_atomic = format!("{:?}", call.args).contains("Ordering");
            if is_change && is_atomic && self.1.contains(&last_name(&call.receiver)) {
                self.0.push(call.method.span().start().line);
            }
            visit::visit_expr_method_call(self, call);
        }
    }
    let names = word_names(library);
    let is_foreign = |path: &str| !path.starts_with("shared");
    figure(places(std::slice::from_ref(library), is_foreign, |module| {
        let mut found = Stores(Vec::new(), &names);
        module.items.iter().for_each(|item| found.visit_item(item));
        found.0
    }))
}

/// The name of the place that an expression leads to: a field, or a variable.
fn last_name(of: &syn::Expr) -> String {
    match of {
        syn::Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => String::new(),
        },
        syn::Expr::Index(index) => last_name(&index.expr),
        syn::Expr::Path(path) => path_name(&path.path),
        syn::Expr::Reference(reference) => last_name(&reference.expr),
        _ => String::new(),
    }
}

/// The names of the words of the control file.
fn word_names(library: &Crate) -> BTreeSet<String> {
    let structs = library.modules["shared::words"].items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(&item.fields),
        _ => None,
    });
    let is_atomic = |field: &&syn::Field| format!("{:?}", field.ty).contains("Atomic");
    let names = structs.flatten().filter(is_atomic).filter_map(|field| field.ident.as_ref());
    names.map(ToString::to_string).collect()
}

/// Files directly in `log/`.
pub(crate) fn files_of_log() -> Figure {
    let files = Source::below("crates/vellum/src/log/").into_iter().map(|source| source.name);
    figure(files.filter(|name| name.matches('/').count() == 4).collect())
}

/// Lines of code of some crates, without comments, blank lines and tests.
pub(crate) fn code_lines(crates: &[&str]) -> Figure {
    let folders = crates.iter().map(|name| format!("crates/{name}/src/"));
    let sources: Vec<Source> = folders.flat_map(|folder| Source::below(&folder)).collect();
    let lines = sources
        .iter()
        .filter(|source| !is_test(&source.name))
        .map(|source| source.code_lines().filter(|(_, line)| !line.trim().is_empty()).count());
    (lines.sum(), Vec::new())
}

/// Words of the pages, as `wc -w` counts them: with code, figures and the bars of tables.
pub(crate) fn page_words() -> Figure {
    let pages = named("docs/", &["md"]);
    (pages.iter().map(|page| page.text.split_whitespace().count()).sum(), Vec::new())
}

/// The lengths of all functions of all crates, longest first.
pub(crate) fn function_lengths() -> Vec<(usize, String)> {
    struct Functions<'a>(Vec<(usize, String)>, &'a str);
    impl Functions<'_> {
        fn add(&mut self, name: &syn::Ident, block: &syn::Block) {
            let lines = block.brace_token.span.close().end().line - name.span().start().line + 1;
            self.0.push((lines, format!("{}: {name}", self.1)));
        }
    }
    impl<'ast> Visit<'ast> for Functions<'_> {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.add(&item.sig.ident, &item.block);
            visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.add(&item.sig.ident, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }
    let mut all = Vec::new();
    for name in crates() {
        for module in Crate::read(&name).modules.values() {
            let mut found = Functions(Vec::new(), &module.file);
            module.items.iter().for_each(|item| found.visit_item(item));
            all.append(&mut found.0);
        }
    }
    all.sort_by(|one, other| other.cmp(one));
    all
}

/// The crates of the repository.
pub(crate) fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("src").is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn table(figures: &[(&str, usize, Figure)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (what, ceiling, (found, places)) in figures {
        match found.cmp(ceiling) {
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Less => {
                faults.push(format!("{what}: {found}, less than {ceiling}: lower the ceiling"));
            }
            std::cmp::Ordering::Greater => {
                let places = places.join("\n    ");
                faults.push(format!("{what}: {found}, and {ceiling} is the most:\n    {places}"));
            }
        }
    }
    faults
}
