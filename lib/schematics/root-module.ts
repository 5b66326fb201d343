import type ts from 'typescript';
import { SourceEditor, type TypeScript } from './source-editor.js';

const MODULES = [
  { from: '@nestjs/config', name: 'ConfigModule', options: '' },
  // Global, so that the application's other modules need no import, and no second client.
  { from: 'nestjs-service', name: 'ServiceModule', options: '{ isGlobal: true }' },
];

/**
 * The file of a root module with ConfigModule and ServiceModule among its imports; undefined where it is not understood.
 */
export function addModules(typescript: TypeScript, text: string, className: string): string | undefined {
  const editor = new SourceEditor(typescript, text);
  const metadata = metadataOf(editor, className);
  if (metadata === undefined) return undefined;
  const imports = importsOf(editor, metadata);
  if (imports === undefined) return undefined;

  const added: string[] = [];
  for (const { from, name, options } of MODULES) {
    const present = editor.localName(from, name);
    if (present !== undefined && imports !== 'none' && editor.uses(present, imports)) continue;
    const local = editor.import(from, name);
    if (local === undefined) return undefined;
    added.push(`${local}.forRoot(${options})`);
  }
  if (added.length > 0) insertElements(editor, metadata, imports, added);
  return editor.result();
}

type Imports = ts.ArrayLiteralExpression | 'none';

function metadataOf(editor: SourceEditor, className: string): ts.ObjectLiteralExpression | undefined {
  const { ts: typescript, source } = editor;
  const decorated = source.statements.find(
    (statement) => typescript.isClassDeclaration(statement) && statement.name?.text === className,
  );
  if (decorated === undefined || !typescript.canHaveDecorators(decorated)) return undefined;
  const name = editor.localName('@nestjs/common', 'Module');
  for (const { expression } of typescript.getDecorators(decorated) ?? []) {
    if (!typescript.isCallExpression(expression) || expression.expression.getText() !== name) continue;
    const [metadata] = expression.arguments;
    if (metadata && typescript.isObjectLiteralExpression(metadata)) return metadata;
  }
  return undefined;
}

/** The array of `imports`; undefined where it is something else, or may come from elsewhere. */
function importsOf(
  { ts: typescript }: SourceEditor,
  metadata: ts.ObjectLiteralExpression,
): Imports | undefined {
  const { properties } = metadata;
  if (!properties.every((property) => property.name && typescript.isIdentifier(property.name)))
    return undefined;
  const property = properties.find(({ name }) => name?.getText() === 'imports');
  if (property === undefined) return 'none';
  if (!typescript.isPropertyAssignment(property)) return undefined;
  return typescript.isArrayLiteralExpression(property.initializer) ? property.initializer : undefined;
}

function insertElements(
  editor: SourceEditor,
  metadata: ts.ObjectLiteralExpression,
  imports: Imports,
  added: string[],
): void {
  if (imports === 'none') return insertProperty(editor, metadata, `imports: [${added.join(', ')}],`);
  const last = imports.elements.at(-1);
  if (last === undefined) return editor.insert(imports.getStart() + 1, added.join(', '));
  const onLines = imports.getText().includes('\n');
  const separator = onLines ? `,${editor.eol}${editor.indentOf(last)}` : ', ';
  editor.insert(last.getEnd(), added.map((element) => separator + element).join(''));
}

function insertProperty(editor: SourceEditor, metadata: ts.ObjectLiteralExpression, property: string): void {
  const [first] = metadata.properties;
  const onLines = metadata.getText().includes('\n');
  if (first === undefined) return editor.insert(metadata.getStart() + 1, ` ${property.slice(0, -1)} `);
  editor.insert(first.getStart(), property + (onLines ? editor.eol + editor.indentOf(first) : ' '));
}
