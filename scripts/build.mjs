// Makes dist/, the program as it is delivered: our code in a few files, most other packages beside it in node_modules.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'
import { writeSpreads } from './write-spreads.mjs'

const root = new URL('..', import.meta.url)
const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync(new URL('package.json', root), 'utf8'),
)

// These have hundreds of small modules: node would take longer to read them than the rest of the program.
const bundled = ['typebox', '@noble/curves', '@noble/hashes']

const { outputFiles } = await build({
  absWorkingDir: root.pathname,
  entryPoints: ['packages/cli/src/main.ts'],
  outdir: 'dist',
  bundle: true,
  // A command loads only what it needs.
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  external: Object.keys({ ...dependencies, ...optionalDependencies }).filter(
    (name) => !bundled.includes(name),
  ),
  logLevel: 'warning',
  write: false,
})
// A text that cannot be parsed ends the build here, before the last program is gone.
const written = outputFiles.map(({ path, text }) => [path, writeSpreads(text)])
rmSync(new URL('dist', root), { recursive: true, force: true })
mkdirSync(new URL('dist', root))
for (const [path, text] of written) writeFileSync(path, text)
