import type ts from 'typescript';
import { SourceEditor, type TypeScript } from './source-editor.js';

/**
 * A test of the whole application, as `nest new` makes it, with doubles of the services: without them it would need the
 * SERVICE_* variables. Undefined where it is not understood.
 */
export function addStub(typescript: TypeScript, text: string): string | undefined {
  const editor = new SourceEditor(typescript, text);
  if (editor.uses('stubService')) return text;
  const creations = editor.find(
    editor.source,
    (node) => typescript.isCallExpression(node) && node.expression.getText() === 'Test.createTestingModule',
  );
  const [creation] = creations;
  if (creation === undefined || creations.length > 1 || editor.uses('builder')) return undefined;
  const statement = statementOf(typescript, creation);
  if (statement === undefined || !creation.parent.getText().endsWith('.compile')) return undefined;
  if (editor.import('nestjs-service/testing', 'stubService') !== 'stubService') return undefined;

  const end = `${editor.semicolon}${editor.eol}${editor.indentOf(statement)}`;
  const before = `const builder = ${creation.getText()}${end}stubService(builder)${end}`;
  editor.insert(statement.getStart(), before);
  editor.replace(creation, 'builder');
  return editor.result();
}

/** The statement that a node is part of, in a block. */
function statementOf(typescript: TypeScript, node: ts.Node): ts.Node | undefined {
  if (node.parent === undefined || typescript.isSourceFile(node.parent)) return undefined;
  return typescript.isBlock(node.parent) ? node : statementOf(typescript, node.parent);
}
