// Compiles contracts/*.sol and writes the modules below, which are committed: the service runs on them
// without a compiler. A test compiles again and compares.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import solc from 'solc'

const root = fileURLToPath(new URL('..', import.meta.url))
/** The modules with their contracts; `isDeployed` where we send the contract to a chain ourselves. */
const modules = {
  'packages/server/src/devnet/contracts.ts': {
    names: ['TestDollar', 'Multicall3', 'Permit2', 'UptoProxy'],
  },
  'packages/server/src/anchors/contract.ts': { names: ['Anchors'], isDeployed: true },
  'packages/server/src/x402/channels/contracts.ts': {
    names: ['ChannelEscrow', 'AuthorizationCollector'],
  },
}

const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  // The oldest target that a current chain of any kind still runs.
  evmVersion: 'paris',
  // Without the metadata hash the code depends on the source's meaning only, not on its comments.
  metadata: { bytecodeHash: 'none', appendCBOR: false },
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const path of Object.keys(modules)) writeFileSync(join(root, path), contractsModule(path))
}

/** The text of a module for the sources as they are now. */
export function contractsModule(path) {
  const { names, isDeployed } = modules[path]
  const compiled = names.map(compile)
  return [
    `// Made by scripts/compile-contracts.mjs from contracts/*.sol with solc ${solc.version()}. Do not edit.`,
    '',
    ...compiled.map(({ name, sourceSha256, abi, code, creationCode }) =>
      [
        `/** Runtime code of contracts/${name}.sol (SHA-256 ${sourceSha256}). */`,
        `export const ${camel(name)} = {`,
        `  sourceSha256: ${quoted(sourceSha256)},`,
        `  // biome-ignore format: one signature a line would only be longer`,
        `  abi: ${JSON.stringify(abi)},`,
        `  code: ${quoted(code)},`,
        ...(isDeployed ? ['  creationCode:', `    ${quoted(creationCode)},`] : []),
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
      outputSelection: {
        '*': { '*': ['abi', 'evm.deployedBytecode.object', 'evm.bytecode.object'] },
      },
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
    creationCode: `0x${contract.evm.bytecode.object}`,
  }
}

function camel(name) {
  return `${name[0].toLowerCase()}${name.slice(1)}`
}

function quoted(text) {
  return `'${text}'`
}
