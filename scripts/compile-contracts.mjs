// Compiles contracts/*.sol and writes packages/server/src/devnet/contracts.ts, which is committed:
// the service runs on it without a compiler. A test compiles again and compares.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import solc from 'solc'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = join(root, 'packages/server/src/devnet/contracts.ts')
const names = ['TestDollar', 'Multicall3']

const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  // The oldest target that a current chain of any kind still runs.
  evmVersion: 'paris',
  // Without the metadata hash the code depends on the source's meaning only, not on its comments.
  metadata: { bytecodeHash: 'none', appendCBOR: false },
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, contractsModule())

/** The text of contracts.ts for the sources as they are now. */
export function contractsModule() {
  const compiled = names.map(compile)
  return [
    '// Made by scripts/compile-contracts.mjs from contracts/*.sol. Do not edit.',
    '',
    `export const compiler = ${quoted(solc.version())}`,
    '',
    ...compiled.map(({ name, sourceSha256, abi, code }) =>
      [
        `/** Runtime code of contracts/${name}.sol (SHA-256 ${sourceSha256}). */`,
        `export const ${camel(name)} = {`,
        `  sourceSha256: ${quoted(sourceSha256)},`,
        `  // biome-ignore format: one signature a line would only be longer`,
        `  abi: ${JSON.stringify(abi)},`,
        `  code: ${quoted(code)},`,
        '} as const',
        '',
      ].join('\n'),
    ),
  ].join('\n')
}

function compile(name) {
  const file = `${name}.sol`
  const content = readFileSync(join(root, 'contracts', file), 'utf8')
  const input = {
    language: 'Solidity',
    sources: { [file]: { content } },
    settings: {
      ...settings,
      outputSelection: { '*': { '*': ['abi', 'evm.deployedBytecode.object'] } },
    },
  }
  const output = JSON.parse(solc.compile(JSON.stringify(input)))
  if (output.errors?.length > 0) {
    throw new Error(output.errors.map((error) => error.formattedMessage).join('\n'))
  }
  const contract = output.contracts[file][name]
  return {
    name,
    sourceSha256: createHash('sha256').update(content).digest('hex'),
    abi: contract.abi,
    code: `0x${contract.evm.deployedBytecode.object}`,
  }
}

function camel(name) {
  return `${name[0].toLowerCase()}${name.slice(1)}`
}

function quoted(text) {
  return `'${text}'`
}
