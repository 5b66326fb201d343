import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type * as Package from 'nestjs-service';
import type * as Testing from 'nestjs-service/testing';
import { readDocument, ROOT, type Snippets, writeSnippets } from '../helpers/readme.js';
import { programOf, typeProblems } from '../helpers/type-problems.js';

/** The project's sources, with a resource that the service does not have, added as CONTRIBUTING.md says. */
const folder = join(ROOT, 'test/.readme/contributing');
const LIMIT_MS = 120_000;

const DTO = `import { IsNotEmpty, IsString, MaxLength } from 'class-validator';

/** Body of POST /umbrellas/v1. */
export class CreateUmbrellaDto {
  /** The customer whose umbrella it is. */
  @MaxLength(128)
  @IsNotEmpty()
  @IsString()
  customer_id!: string;
}
`;

const SERVICE = `import { Injectable } from '@nestjs/common';
import { type HeaderOptions } from '../http/call-options.js';
import { type ServiceHttpService } from '../http/service-http.service.js';
import { validateInput } from '../http/validate-input.js';
import { CreateUmbrellaDto } from './create-umbrella.dto.js';

/** The umbrellas of customers. */
@Injectable()
export class UmbrellasService {
  readonly #http: ServiceHttpService;
  readonly #path: string;

  /** @internal */
  constructor(http: ServiceHttpService) {
    this.#http = http;
    this.#path = http.pathOf('umbrellas');
  }

  /** POST /umbrellas/v1. */
  async create<T = unknown>(umbrella: CreateUmbrellaDto, options?: HeaderOptions): Promise<T> {
    const { customer_id } = validateInput(CreateUmbrellaDto, umbrella);
    return this.#http.post<T>(this.#path, { customer_id }, options);
  }
}
`;

const ADDED: Record<string, string> = {
  'lib/umbrellas/create-umbrella.dto.ts': DTO,
  'lib/umbrellas/umbrellas.service.ts': SERVICE,
};

/** What each file that is there gets after the line. */
const LINES: [file: string, after: string, line: string][] = [
  ['eslint.config.js', "  ['http'],\n", "  ['umbrellas'],\n"],
  ['lib/config/resources.ts', "  customers: '/customers/v1',\n", "  umbrellas: '/umbrellas/v1',\n"],
  ['lib/engine/resources.ts', '  customers: CustomersService,\n', '  umbrellas: UmbrellasService,\n'],
  [
    'lib/engine/resources.ts',
    "from '../http/service-http.service.js';\n",
    "import { UmbrellasService } from '../umbrellas/umbrellas.service.js';\n",
  ],
  [
    'lib/index.ts',
    "from './auth/service-auth.service.js';\n",
    "export { UmbrellasService } from './umbrellas/umbrellas.service.js';\nexport { CreateUmbrellaDto } from './umbrellas/create-umbrella.dto.js';\n",
  ],
  [
    'lib/testing/servers/answer-api-call.ts',
    'answer: createCustomer },\n',
    "  umbrellas: { method: 'POST', answer: () => ({ status: 201, json: { umbrella_id: randomUUID() } }) },\n",
  ],
];

interface UmbrellasService {
  create(umbrella: object): Promise<unknown>;
}

it(
  'The TypeScript of every document compiles',
  async () => {
    const files = await readdir(join(ROOT, 'docs'));
    // Recipes are compiled in test/consumers, which installs their packages.
    const guides = files.filter((name) => name.endsWith('.md') && name !== 'recipes.md');
    const documents = new Map<string, Snippets>();
    for (const name of ['README.md', ...guides.map((guide) => `docs/${guide}`)]) {
      const { fences } = await readDocument(name);
      const snippets = await writeSnippets(fences, { name: `types-${basename(name, '.md')}`, stubs: true });
      if (snippets.files.length > 0) documents.set(name, snippets);
      else await snippets.remove();
    }
    expect(documents.size).toBeGreaterThanOrEqual(9);
    // One compilation: each loads Nest, axios and Node's types anew.
    const program = programOf(...documents.values());
    const problems = [...documents].map(([name, snippets]) => [name, typeProblems(snippets, program)]);
    expect(problems).toEqual([...documents.keys()].map((name) => [name, []]));
    for (const snippets of documents.values()) await snippets.remove();
  },
  LIMIT_MS,
);

describe('CONTRIBUTING.md', () => {
  const added = Object.keys(ADDED).map((name) => join(folder, name));

  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    for (const name of ['lib', 'eslint.config.js']) {
      await cp(join(ROOT, name), join(folder, name), { recursive: true });
    }
    for (const [name, text] of Object.entries(ADDED)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    for (const [name, after, line] of LINES) {
      const path = join(folder, name);
      const text = await readFile(path, 'utf8');
      expect([name, text.includes(after)]).toEqual([name, true]);
      await writeFile(path, text.replace(after, after + line));
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('names the files that get a line, and the folder', async () => {
    const { text } = await readDocument('CONTRIBUTING.md');
    const section = text.split('## A new resource')[1]?.split('\n## ')[0] ?? '';
    expect(section).toContain('`umbrellas`');
    expect(LINES.map(([name]) => name).filter((name) => !section.includes(`\`${name}\``))).toEqual([]);
  });

  it(
    'has steps after which the types are right',
    async () => {
      await writeFile(join(folder, 'globals.d.ts'), '');
      const sources: Snippets = {
        folder,
        files: [...added, join(folder, 'lib/index.ts'), join(folder, 'lib/testing/index.ts')],
        path: (file) => join(folder, file),
        stub: (name) => name,
        remove: () => Promise.resolve(),
      };
      expect(typeProblems(sources, programOf(sources))).toEqual([]);
    },
    LIMIT_MS,
  );

  it('has steps after which a host can inject the resource and call it', async () => {
    const changed = (await import(join(folder, 'lib/index.ts'))) as typeof Package & {
      UmbrellasService: Type<UmbrellasService>;
    };
    const { ServiceSimulator } = (await import(join(folder, 'lib/testing/index.ts'))) as typeof Testing;
    const simulator = await ServiceSimulator.start();
    const options = simulator.moduleOptions({ environment: 'production', authentication: 'mtls' });
    // Not yet a name in the types of this project.
    const http: object = { trailingSlash: ['umbrellas'] };
    const module = await Test.createTestingModule({
      imports: [changed.ServiceModule.forRoot({ ...options, http })],
    }).compile();
    const umbrellas = module.get(changed.UmbrellasService);
    expect(await umbrellas.create({ customer_id: 'c-1' })).toEqual({ umbrella_id: expect.any(String) });
    await expect(umbrellas.create({})).rejects.toBeInstanceOf(changed.ServiceRequestError);
    expect(simulator.apiRequests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /umbrellas/v1/',
    ]);
    await module.close();
    await simulator.stop();
  });

  it('has steps after which a test of a host can have a double of the resource', async () => {
    const { ServiceModule, UmbrellasService } = (await import(join(folder, 'lib/index.ts'))) as {
      ServiceModule: typeof Package.ServiceModule;
      UmbrellasService: Type<UmbrellasService>;
    };
    const { stubService } = (await import(join(folder, 'lib/testing/index.ts'))) as typeof Testing;
    const answers: unknown[] = [];
    const doubles: object[] = [{}, { umbrellas: { create: () => ({ umbrella_id: 'mine' }) } }];
    for (const each of doubles) {
      const builder = Test.createTestingModule({ imports: [ServiceModule.forRoot()] });
      const service = stubService(builder, each);
      const module = await builder.compile();
      answers.push(await module.get(UmbrellasService).create({ customer_id: 'c-1' }));
      expect(service.calls.map(({ method }) => method)).toEqual(['umbrellas.create']);
      await module.close();
    }
    expect(answers).toEqual([{}, { umbrella_id: 'mine' }]);
  });
});
