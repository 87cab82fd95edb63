import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type BuildOptions, build, buildSync, type Plugin } from 'esbuild'

const repository = join(import.meta.dirname, '../..')
/** The bundle's packages are searched from this folder. */
const folder = join(repository, 'packages/server/node_modules/.cache/tollbase-tests')
/** These packages load files that lie beside them. */
const external = ['libpg-query', 'pg-native']
/** CommonJS packages call these inside of a module. */
const js =
  "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);"

/** The time is longer than any run of the tests. */
const keptMs = 24 * 3_600_000

const bundles = new Map<string, string>()

/**
 * Returns the file of a program of the repository, bundled as JavaScript, by its path in the repository. Tests
 * start programs some hundred times, and an unbundled program takes eight times the work to load.
 */
export function getBundle(entry: string): string {
  const file = bundles.get(entry) ?? bundle(entry)
  bundles.set(entry, file)
  return file
}

/** Bundles a module of the repository, with sources changed by plugins. Returns the file. */
export async function bundleWith(entry: string, plugins: readonly Plugin[]): Promise<string> {
  const { outputFiles } = await build({ ...describeBuild(entry), plugins: [...plugins] })
  return keep(entry, outputFiles[0]?.contents)
}

function bundle(entry: string): string {
  return keep(entry, buildSync(describeBuild(entry)).outputFiles[0]?.contents)
}

function describeBuild(entry: string) {
  return {
    entryPoints: [join(repository, entry)],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external,
    banner: { js },
    logLevel: 'error',
  } as const satisfies BuildOptions
}

function keep(entry: string, contents: Uint8Array = new Uint8Array()): string {
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 16)
  const file = join(folder, `${basename(entry).replace(/\.\w+$/, '')}-${hash}.mjs`)
  mkdirSync(folder, { recursive: true })
  sweep()
  // The file appears complete at once, because test processes run side by side.
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, contents)
  renameSync(draft, file)
  return file
}

/** Removes bundles of earlier sources. */
function sweep(): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    const madeMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (madeMs < Date.now() - keptMs) rmSync(file, { force: true })
  }
}
