import type ts from 'typescript';

export type TypeScript = typeof ts;

interface Insertion {
  position: number;
  /** Where the part ends that the text replaces. */
  end: number;
  text: string;
}

/** Changes to a TypeScript file, in the style that the file has. Nothing else in it changes. */
export class SourceEditor {
  readonly source: ts.SourceFile;
  readonly eol: string;
  readonly semicolon: string;
  readonly #quote: string;
  readonly #insertions: Insertion[] = [];

  constructor(
    readonly ts: TypeScript,
    readonly text: string,
  ) {
    this.source = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true);
    const [first] = this.imports();
    this.eol = text.includes('\r\n') ? '\r\n' : '\n';
    this.semicolon = first === undefined || first.getText().endsWith(';') ? ';' : '';
    this.#quote = first?.moduleSpecifier.getText().startsWith('"') ? '"' : "'";
  }

  imports(): ts.ImportDeclaration[] {
    return this.source.statements.filter((statement) => this.ts.isImportDeclaration(statement));
  }

  /** The name that the file has for an export of a package; undefined where it does not import it as a value. */
  localName(packageName: string, exported: string): string | undefined {
    return this.#namedImports(packageName)
      .flatMap(({ elements }) => [...elements])
      .find((element) => !element.isTypeOnly && (element.propertyName ?? element.name).text === exported)
      ?.name.text;
  }

  /** Imports it where it is not imported yet; undefined where the file uses the name for something else. */
  import(packageName: string, exported: string): string | undefined {
    const present = this.localName(packageName, exported);
    if (present !== undefined) return present;
    if (this.uses(exported)) return undefined;
    const last = this.#namedImports(packageName).at(-1)?.elements.at(-1);
    if (last !== undefined) {
      this.insert(last.getEnd(), `, ${exported}`);
      return exported;
    }
    const line = `import { ${exported} } from ${this.#quote}${packageName}${this.#quote}${this.semicolon}`;
    const lastImport = this.imports().at(-1);
    if (lastImport === undefined) this.insert(0, line + this.eol);
    else this.insert(lastImport.getEnd(), this.eol + line);
    return exported;
  }

  /** Whether a name occurs in a part of the file; comments and texts do not count. */
  uses(name: string, part: ts.Node = this.source): boolean {
    return this.find(part, (node) => this.ts.isIdentifier(node) && node.text === name).length > 0;
  }

  find(part: ts.Node, fits: (node: ts.Node) => boolean): ts.Node[] {
    const found: ts.Node[] = fits(part) ? [part] : [];
    this.ts.forEachChild(part, (child) => {
      found.push(...this.find(child, fits));
    });
    return found;
  }

  /** The white space at the start of the line where a node begins. */
  indentOf(node: ts.Node): string {
    const start = this.text.lastIndexOf('\n', node.getStart() - 1) + 1;
    return /^[ \t]*/.exec(this.text.slice(start))?.[0] ?? '';
  }

  insert(position: number, text: string): void {
    this.#insertions.push({ position, end: position, text });
  }

  replace(node: ts.Node, text: string): void {
    this.#insertions.push({ position: node.getStart(), end: node.getEnd(), text });
  }

  /** The file with all changes. */
  result(): string {
    let result = this.text;
    // From the end, so that positions stay right. Of one position: the last first.
    for (const { position, end, text } of this.#insertions
      .map((one, order) => ({ ...one, order }))
      .sort(byPosition)) {
      result = result.slice(0, position) + text + result.slice(end);
    }
    return result;
  }

  #namedImports(packageName: string): ts.NamedImports[] {
    return this.imports().flatMap(({ importClause, moduleSpecifier }) => {
      const bindings = importClause?.namedBindings;
      const isFromPackage = this.ts.isStringLiteral(moduleSpecifier) && moduleSpecifier.text === packageName;
      if (!isFromPackage || !bindings || !this.ts.isNamedImports(bindings)) return [];
      return /^import\s+type\b/.test(bindings.parent.parent.getText()) ? [] : [bindings];
    });
  }
}

function byPosition(one: Insertion & { order: number }, other: Insertion & { order: number }): number {
  return other.position - one.position || other.order - one.order;
}
