// The breaks that a file can have: each replaces one token, or takes one statement out.
import ts from 'typescript';

const OPERATORS = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>'],
  '<=': ['<', '>'],
  '>': ['>=', '<'],
  '>=': ['>', '<'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['||', '&&'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '+=': ['-='],
  '-=': ['+='],
};

/** The node that a break replaces, and the texts that it can have instead. */
function changeOf(node) {
  const text = node.getText();
  if (ts.isBinaryExpression(node)) {
    return [node.operatorToken, OPERATORS[node.operatorToken.getText()] ?? []];
  }
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [node, ['false']];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [node, ['true']];
  if (ts.isNumericLiteral(node)) return [node, numbersBeside(+node.text)];
  // A text with a space is a message for people.
  if (ts.isStringLiteral(node)) return [node, /\s/.test(text) ? [] : ["''"]];
  if (text.startsWith('!') && ts.isPrefixUnaryExpression(node)) return [node, [text.slice(1)]];
  if (ts.isAwaitExpression(node)) return [node, [node.expression.getText()]];
  if (ts.isIfStatement(node) || ts.isWhileStatement(node)) return negated(node.expression);
  if (ts.isConditionalExpression(node)) return negated(node.condition);
  if (ts.isReturnStatement(node) && node.expression) {
    return [node.expression, ['undefined', ...negated(node.expression)[1]]];
  }
  if (ts.isExpressionStatement(node)) return [node, [';']];
  return [node, []];
}

/** One more or less is nothing for a limit of 10,000. */
function numbersBeside(value) {
  return value < 100 ? [`${value + 1}`, `(${value - 1})`, '0'] : [`${value * 10}`, '0'];
}

function negated(condition) {
  const text = condition.getText();
  return [condition, text === 'true' || text === 'false' ? [] : [`!(${text})`]];
}

/** All breaks of a source text, as `{ start, end, replacement }`. */
export function breaksOf(name, text) {
  const breaks = [];
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    const [changed, texts] = changeOf(node);
    for (const replacement of texts) {
      if (replacement === changed.getText()) continue;
      breaks.push({ start: changed.getStart(), end: changed.getEnd(), replacement });
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true));
  return breaks;
}

/** The same order for the same seed (the generator is mulberry32). */
export function shuffle(items, seed) {
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return items
    .map((item) => ({ item, key: random() }))
    .sort((one, other) => one.key - other.key)
    .map(({ item }) => item);
}
