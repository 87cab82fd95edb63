import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../..', import.meta.url))

export type Outcome = { readonly passed: boolean; readonly output: string }

/** A copy of the repository's rules around a handful of files, in a temporary folder. */
export type SmallRepository = {
  /** Writes files by path. */
  readonly write: (files: Readonly<Record<string, string>>) => void
  /** Writes one file; the returned function undoes that. */
  readonly plant: (path: string, text: string) => () => void
  /** Runs a checker of the repository inside the copy. */
  readonly run: (tool: Tool) => Promise<Outcome>
  readonly end: () => void
}

export type Tool = keyof typeof tools

const tools = {
  lint: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'],
  types: ['node_modules/typescript/bin/tsc', '-p', '.'],
  rooms: ['scripts/check-rooms.mjs'],
  words: ['scripts/check-words.mjs'],
  // Without `dependencies`: the copied package.json files name far more than a few files can use.
  dead: ['node_modules/knip/bin/knip.js', '--include', 'files,exports,types,unlisted,unresolved'],
} as const

const rules = [
  'biome.json',
  'knip.json',
  'rooms.js',
  'GLOSSARY.md',
  'tsconfig.json',
  'scripts/check-rooms.mjs',
  'scripts/check-words.mjs',
  'scripts/page-problems.mjs',
  'scripts/no-ambient-world.grit',
  ...['contract', 'verify', 'server', 'cli'].flatMap((name) => [`packages/${name}/package.json`]),
]

/** Our own would need helpers that nothing else in the small repository uses; the checkers read only where tests are. */
const testConfig = `import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts'] },
})
`

export function buildSmallRepository(): SmallRepository {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-house-'))
  for (const file of ['package.json', ...rules]) {
    cpSync(join(repository, file), join(folder, file), { recursive: true })
  }
  linkPackages(folder)
  const write: SmallRepository['write'] = (files) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
  }
  write({ 'vitest.config.ts': testConfig })
  return {
    write,
    plant: (path, text) => {
      const file = join(folder, path)
      const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined
      write({ [path]: text })
      return () => (before === undefined ? rmSync(file) : write({ [path]: before }))
    },
    run: (tool) => runTool(tools[tool], folder),
    end: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The packages of the registry are the repository's; those of the workspace are the copy's own. */
function linkPackages(folder: string): void {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '@tollbase'), { recursive: true })
  for (const name of readdirSync(join(repository, 'node_modules'))) {
    if (name === '@tollbase' || name.startsWith('.')) continue
    symlinkSync(join(repository, 'node_modules', name), join(modules, name))
  }
  for (const name of ['contract', 'verify', 'server', 'cli']) {
    symlinkSync(join(folder, 'packages', name), join(modules, '@tollbase', name))
  }
}

function runTool(command: readonly string[], folder: string): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      command,
      { cwd: folder, timeout: 50_000, env: { ...process.env, FORCE_COLOR: '0' } },
      (error, stdout, stderr) => resolve({ passed: error === null, output: stdout + stderr }),
    )
  })
}
