import type ts from 'typescript';
import { SourceEditor, type TypeScript } from './source-editor.js';

/** Where main.ts has the root module from. */
export interface RootModule {
  className: string;
  /** As in its import declaration. */
  specifier: string;
}

interface Line {
  /** Where this name occurs, the application has the line already. */
  name: string;
  /** The package that exports the name; absent where the line needs no import. */
  from?: string;
  call: string;
}

// No ValidationPipe: with `whitelist` it would empty the bodies of the routes that an application has already.
const LINES: readonly Line[] = [
  { name: 'enableShutdownHooks', call: 'enableShutdownHooks()' },
  {
    name: 'ServiceExceptionFilter',
    from: 'nestjs-service',
    call: 'useGlobalFilters(new ServiceExceptionFilter())',
  },
];

/** What the one `NestFactory.create()` of main.ts creates; undefined where that is not one imported class. */
export function findRootModule(typescript: TypeScript, text: string): RootModule | undefined {
  const editor = new SourceEditor(typescript, text);
  const root = creationOf(editor)?.arguments[0];
  if (root === undefined || !typescript.isIdentifier(root)) return undefined;
  for (const { importClause, moduleSpecifier } of editor.imports()) {
    const bindings = importClause?.namedBindings;
    if (!bindings || !typescript.isNamedImports(bindings) || !typescript.isStringLiteral(moduleSpecifier))
      continue;
    const element = bindings.elements.find(({ name }) => name.text === root.text);
    if (element === undefined || !moduleSpecifier.text.startsWith('.')) continue;
    return { className: (element.propertyName ?? element.name).text, specifier: moduleSpecifier.text };
  }
  return undefined;
}

/**
 * main.ts with shutdown hooks and exception filter, as far as neither it nor the root module has them; undefined where
 * it is not understood.
 */
export function addToMain(typescript: TypeScript, text: string, rootModule = ''): string | undefined {
  const editor = new SourceEditor(typescript, text);
  const module = new SourceEditor(typescript, rootModule);
  const missing = LINES.filter(({ name }) => !editor.uses(name) && !module.uses(name));
  if (missing.length === 0) return text;
  const statement = statementOf(editor);
  if (statement === undefined) return undefined;

  const { after, variable } = statement;
  const indent = editor.indentOf(after);
  for (const { name, from, call } of missing) {
    if (from !== undefined && editor.import(from, name) !== name) return undefined;
    editor.insert(after.getEnd(), `${editor.eol}${indent}${variable}.${call}${editor.semicolon}`);
  }
  return editor.result();
}

/** The only call of NestFactory.create(). */
function creationOf(editor: SourceEditor): ts.CallExpression | undefined {
  const { ts: typescript, source } = editor;
  const factory = editor.localName('@nestjs/core', 'NestFactory');
  const calls = editor.find(
    source,
    (node) => typescript.isCallExpression(node) && node.expression.getText() === `${factory}.create`,
  ) as ts.CallExpression[];
  return calls.length === 1 ? calls[0] : undefined;
}

/** `const app = await NestFactory.create(...)`: the application's name, and the statement after which calls go. */
function statementOf(editor: SourceEditor): { variable: string; after: ts.Node } | undefined {
  const { ts: typescript } = editor;
  const awaited = creationOf(editor)?.parent;
  const declaration = awaited?.parent;
  if (!awaited || !typescript.isAwaitExpression(awaited)) return undefined;
  if (!declaration || !typescript.isVariableDeclaration(declaration)) return undefined;
  const list = declaration.parent;
  if (!typescript.isVariableDeclarationList(list) || list.declarations.length > 1) return undefined;
  const statement = list.parent;
  if (!typescript.isIdentifier(declaration.name) || !typescript.isVariableStatement(statement))
    return undefined;
  const { parent: block } = statement;
  if (!typescript.isBlock(block) && !typescript.isSourceFile(block)) return undefined;
  // Nest asks the filter that was added last first: ours goes after a host's own, which may catch everything.
  const filters = block.statements.filter((each) => editor.uses('useGlobalFilters', each));
  return { variable: declaration.name.text, after: filters.at(-1) ?? statement };
}
