import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

type Namespace = { readonly asBytes: () => Uint8Array }
type Blob = { readonly commitment: { readonly hash: () => Uint8Array }; readonly free: () => void }

/** The parts of lumina-node-wasm that the tests hold ours against: the code of a light node of Celestia, in Rust. */
export type Lumina = {
  readonly Namespace: {
    readonly newV0: (id: Uint8Array) => Namespace
    readonly fromRaw: (raw: Uint8Array) => Namespace
  }
  readonly Blob: new (namespace: Namespace, data: Uint8Array, version: unknown) => Blob
  readonly AppVersion: { readonly latest: () => unknown }
}

/** The global `WebAssembly`, which the types of Node.js lack. */
type Engine = {
  readonly instantiate: (
    wasm: Uint8Array,
    imports: object,
  ) => Promise<{ readonly instance: { readonly exports: Readonly<Record<string, unknown>> } }>
}

/** Loads the wasm by hand: the package's own entry imports it as a module, which Node.js 20 refuses. */
export async function loadLumina(): Promise<Lumina> {
  const require = createRequire(import.meta.url)
  const script = require.resolve('lumina-node-wasm/lumina_node_wasm_bg.js')
  const bindings = await import(script)
  const wasm = readFileSync(script.replace('.js', '.wasm'))
  const engine: Engine = Reflect.get(globalThis, 'WebAssembly')
  const { instance } = await engine.instantiate(wasm, {
    './lumina_node_wasm_bg.js': bindings,
  })
  bindings.__wbg_set_wasm(instance.exports)
  const start = instance.exports.__wbindgen_start
  if (typeof start === 'function') start()
  return bindings
}
