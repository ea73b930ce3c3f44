//! Writes the impls: one for a plain type, one for each shape of a generic one.

use crate::attribute::{Fields, MessageAttribute, Shape};
use crate::contract::CheckedContract;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::{Data, DeriveInput, Error, GenericParam, Ident, Result, Type};

/// The impls for `input`.
pub(crate) fn message(input: &DeriveInput) -> Result<TokenStream> {
    check_kind(input)?;
    let attribute = MessageAttribute::read(&input.attrs)?;
    if input.generics.params.is_empty() { plain(input, &attribute) } else { generic(input, &attribute) }
}

fn check_kind(input: &DeriveInput) -> Result<()> {
    if let Data::Union(data) = &input.data {
        let text = "a union does not say what it holds, so it cannot be a message; use an enum";
        return Err(Error::new(data.union_token.span, text));
    }
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let text = "a message outlives whoever accepted it, so it cannot borrow; own the data, such as `String` for `&str`";
        return Err(Error::new_spanned(lifetime, text));
    }
    Ok(())
}

fn plain(input: &DeriveInput, attribute: &MessageAttribute) -> Result<TokenStream> {
    let ident = &input.ident;
    if let Some(shape) = attribute.shapes.first() {
        let text = format!(
            "`{ident}` is not generic; write `#[message(name = \"…\", version = 1)]` without a shape"
        );
        return Err(Error::new_spanned(&shape.ty, text));
    }
    if !input.attrs.iter().any(|attribute| attribute.path().is_ident("message")) {
        let text = format!("`{ident}` has no contract; add `#[message(name = \"…\", version = 1)]`");
        return Err(Error::new(ident.span(), text));
    }
    let contract = attribute.fields.contract.check(ident.span())?;
    Ok(implement(&ident.to_token_stream(), ident.span(), &contract, &attribute.fields, attribute))
}

fn generic(input: &DeriveInput, attribute: &MessageAttribute) -> Result<TokenStream> {
    if attribute.shapes.is_empty() {
        let text = format!(
            "`{}` is generic, and a contract belongs to one closed type; list each shape: `#[message(shape({}, name = \"…\", version = 1))]`",
            input.ident,
            example_shape(input),
        );
        return Err(Error::new_spanned(&input.generics, text));
    }
    let literals = &attribute.fields.contract;
    if let Some(literal) = literals.name.as_ref().or(literals.version.as_ref()) {
        let text = "each shape has a contract of its own; move `name` and `version` into `shape(…)`";
        return Err(Error::new_spanned(literal, text));
    }
    let mut contracts = HashSet::new();
    let mut output = TokenStream::new();
    for shape in &attribute.shapes {
        let contract = check_shape(input, shape)?;
        if !contracts.insert((contract.name.clone(), contract.version)) {
            let text = format!(
                "two shapes have the contract {}@{}; give this one another name or version",
                contract.name, contract.version
            );
            return Err(Error::new(contract.span, text));
        }
        output.extend(implement(&shape.ty, input.ident.span(), &contract, &shape.fields, attribute));
    }
    Ok(output)
}

/// What a shape of this type could look like, for the error message.
fn example_shape(input: &DeriveInput) -> String {
    let arguments: Vec<_> = input
        .generics
        .params
        .iter()
        .map(|param| if matches!(param, GenericParam::Const(_)) { "1" } else { "Order" })
        .collect();
    format!("{}<{}>", input.ident, arguments.join(", "))
}

fn check_shape(input: &DeriveInput, shape: &Shape) -> Result<CheckedContract> {
    let of_this_type = match &shape.ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == input.ident),
        _ => false,
    };
    if !of_this_type {
        let text = format!("this is no shape of `{}`; write `{}`", input.ident, example_shape(input));
        return Err(Error::new_spanned(&shape.ty, text));
    }
    if let Some(parameter) = open_parameter(input, shape) {
        let text = format!("this shape is still generic; put a concrete type in the place of `{parameter}`");
        return Err(Error::new(parameter.span(), text));
    }
    let owner =
        shape.ty.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    shape.fields.contract.check(owner)
}

/// The first parameter of the type that a shape mentions.
fn open_parameter(input: &DeriveInput, shape: &Shape) -> Option<Ident> {
    let parameters: Vec<_> = input
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    idents(shape.ty.to_token_stream()).into_iter().find(|ident| parameters.contains(&ident))
}

fn idents(tokens: TokenStream) -> Vec<Ident> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) => vec![ident],
            TokenTree::Group(group) => idents(group.stream()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
        })
        .collect()
}

fn implement(
    ty: &impl ToTokens,
    span: Span,
    contract: &CheckedContract,
    fields: &Fields,
    attribute: &MessageAttribute,
) -> TokenStream {
    let krate = attribute.krate();
    let CheckedContract { name, version, .. } = contract;
    // With the span of the type, a missing `Serialize` is reported at the type and not at the derive.
    let codec = fields.codec.as_ref().or(attribute.fields.codec.as_ref());
    let codec = codec.map_or_else(|| quote_spanned!(span=> #krate::Json), ToTokens::to_token_stream);
    quote! {
        #[automatically_derived]
        impl #krate::Message for #ty {
            const NAME: &'static str = #name;
            const VERSION: u32 = #version;
            type Codec = #codec;
        }
    }
}
