import { readFileSync, writeFileSync } from 'node:fs';
// This is the version that openapi-typescript installs, because TypeScript 7 has no programming interface yet.
import ts from 'typescript';

/** Writes the library's reference page from its comments. With --check, it only reports whether the page is up to date. */
const source = new URL('../src/', import.meta.url);
const output = new URL('../../docs/uploading/client.md', import.meta.url);

type Declared =
  | ts.ClassDeclaration
  | ts.InterfaceDeclaration
  | ts.TypeAliasDeclaration
  | ts.VariableStatement;

function parse(name: string): ts.SourceFile {
  const code = readFileSync(new URL(name, source), 'utf8');
  return ts.createSourceFile(name, code, ts.ScriptTarget.ESNext, true);
}

function find(file: ts.SourceFile, name: string): Declared | undefined {
  for (const statement of file.statements) {
    if (ts.isVariableStatement(statement)) {
      if (statement.declarationList.declarations.some((one) => one.name.getText() === name)) return statement;
    } else if (
      (ts.isClassDeclaration(statement) ||
        ts.isInterfaceDeclaration(statement) ||
        ts.isTypeAliasDeclaration(statement)) &&
      statement.name?.text === name
    )
      return statement;
  }
  return undefined;
}

/** Returns the comment before a node as one paragraph. */
function commentOf(node: ts.Node): string {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return (ts.getTextOfJSDocComment(comment?.comment) ?? '').replace(/\s+/g, ' ');
}

function isPublic(member: ts.ClassElement): boolean {
  const isPrivate = member.name !== undefined && ts.isPrivateIdentifier(member.name);
  return !isPrivate && !ts.isConstructorDeclaration(member);
}

/** Returns a member without its body and its comment. */
function signatureOf(member: ts.Node): string {
  const { body } = member as ts.MethodDeclaration;
  return member
    .getSourceFile()
    .text.slice(member.getStart(), body ? body.getStart() : member.getEnd())
    .replace(/\s+/g, ' ')
    .replace(/\( /g, '(')
    .replace(/, \)/g, ')')
    .replace(/^(export |override |async |readonly )+\*?/, '')
    .replace(/(components\['schemas'\]|Schemas)\['(\w+)'\]/g, '$2')
    .replace(/[;\s]+$/, '');
}

function code(signature: string): string {
  return signature.includes('`') ? `\`\` ${signature} \`\`` : `\`${signature}\``;
}

function listOf(members: readonly ts.Node[]): string[] {
  const lines = members.map((member) => {
    const comment = commentOf(member);
    return `- ${code(signatureOf(member))}${comment && `: ${comment}`}`;
  });
  return lines.length === 0 ? [] : ['', ...lines];
}

function describe(name: string, declared: Declared, level = '##'): string {
  const lines = [`${level} ${name}`];
  if (commentOf(declared)) lines.push('', commentOf(declared));
  if (ts.isClassDeclaration(declared)) {
    const made = declared.members.find(ts.isConstructorDeclaration);
    if (name === 'Intake' && made)
      lines.push('', code(signatureOf(made).replace('constructor', 'new Intake')));
    lines.push(...listOf(declared.members.filter(isPublic)));
  } else if (ts.isInterfaceDeclaration(declared)) {
    const first = declared.members[0]?.name;
    const isByType = first !== undefined && ts.isStringLiteral(first);
    lines.push(...(isByType ? ['', 'It has a member for each record type.'] : listOf(declared.members)));
  } else if (ts.isTypeAliasDeclaration(declared)) lines.push('', code(signatureOf(declared)));
  else lines.push('', 'An array with the name of every record type.');
  return lines.join('\n');
}

const parts: string[] = [];
for (const statement of parse('index.ts').statements) {
  if (!ts.isExportDeclaration(statement)) continue;
  const { exportClause, moduleSpecifier } = statement;
  if (!exportClause || !ts.isNamedExports(exportClause)) continue;
  const file = parse((moduleSpecifier as ts.StringLiteral).text.slice(2));
  for (const { name } of exportClause.elements) {
    const declared = find(file, name.text);
    if (declared === undefined) throw new Error(`${name.text} is not declared in ${file.fileName}`);
    parts.push(describe(name.text, declared));
    if (name.text !== 'Intake' || !ts.isClassDeclaration(declared)) continue;
    for (const member of declared.members.filter(ts.isPropertyDeclaration).filter(isPublic)) {
      const type = find(file, member.type?.getText() ?? '');
      if (type) parts.push(describe(`intake.${member.name.getText()}`, type, '###'));
    }
  }
}
const isFirst = (part: string) => part.startsWith('## Intake\n') || part.startsWith('### intake.');
const reference = `# Reference of the library

This page is generated from the comments in \`client/src\` by \`npm run generate\`. [The library](library.md) shows how to use
the methods, and the service's API reference lists the fields of every type.

${[...parts.filter(isFirst), ...parts.filter((part) => !isFirst(part))].join('\n\n')}
`;
if (!process.argv.includes('--check')) writeFileSync(output, reference);
else if (readFileSync(output, 'utf8') !== reference) {
  console.error('docs/uploading/client.md is not what client/src says; run npm run generate');
  process.exitCode = 1;
}
