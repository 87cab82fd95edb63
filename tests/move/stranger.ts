import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { loadSigner } from '../../packages/server/src/chain/signing.ts'
import { keyFiles } from '../../packages/server/src/operator/backup/manifest.ts'
import { exportApplication } from '../../packages/server/src/operator/move/export-application.ts'
import { importApplication } from '../../packages/server/src/operator/move/import-application.ts'
import { formatSigned } from '../../packages/server/src/operator/move/move-manifest.ts'
import { createData, type Data } from '../support/data.ts'
import { startTestService, type TestOptions, type TestService } from '../support/service.ts'

export type Manifest = {
  application: Record<string, unknown>
  keys: Record<string, unknown>[]
  height: number
}

export type Hostile = { readonly from: string; readonly key: string }

/** An entry with a definition, as no request need have made it. */
export type Written = {
  readonly kind: string
  readonly id: string
  readonly body: object | undefined
}

/** Makes the exports of a service whose operator writes and signs whatever he likes. */
function makeStranger(home: TestService) {
  const root = mkdtempSync(join(tmpdir(), 'tollbase-hostile-'))
  let folders = 0

  /** Exports an application, changes what is said of it, and signs that as the other service does. */
  const exportChanged = async (
    { appId }: Data,
    change: (manifest: Manifest) => void = () => undefined,
  ): Promise<Hostile> => {
    folders += 1
    const from = join(root, String(folders))
    const { key } = await exportApplication(home.config, { app: appId, to: from }, () => undefined)
    const path = join(from, 'application.json')
    const manifest: Manifest = JSON.parse(readFileSync(path, 'utf8'))
    change(manifest)
    const text = JSON.stringify(manifest)
    const signer = await loadSigner(join(home.config.dataDir, keyFiles.signing), 'any')
    writeFileSync(path, text)
    writeFileSync(`${path}.sig`, signer.sign(formatSigned(Buffer.from(text))).toString('base64'))
    return { from, key }
  }

  const createMover = async (): Promise<Data> => {
    const data = await createData(home)
    await data.create({ name: 'notes', primary_column: 'id' })
    return data
  }

  /** Writes definitions that no request would have made. */
  const define = async (data: Data, ...definitions: readonly Written[]): Promise<void> => {
    const { chain } = await home.running.service.tenants.load(data.appId)
    for (const { kind, id, body } of definitions) {
      const { height } = await chain.append([
        {
          header: { type: 'definition', kind, id },
          body: body === undefined ? '' : JSON.stringify(body),
        },
      ])
      await chain.whenApplied(height).catch(() => undefined)
    }
  }

  return {
    exportChanged,
    createMover,
    define,
    /** An application with such definitions. */
    createDefining: async (...definitions: readonly Written[]): Promise<Data> => {
      const data = await createMover()
      await define(data, ...definitions)
      return data
    },
    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** A stranger's service, and one of ours that his exports are taken to, with an application that he has no part in. */
export type HostileScene = {
  readonly home: TestService
  readonly away: TestService
  readonly victim: Data
  readonly stranger: ReturnType<typeof makeStranger>
  readonly importInto: (options: Hostile) => ReturnType<typeof importApplication>
  /** Each is refused by these words; `exports` names what is wrong with each. */
  readonly expectRefusals: (exports: ReadonlyMap<string, Hostile>, words: RegExp) => Promise<void>
  readonly close: () => Promise<void>
}

export async function openHostileScene(options: TestOptions = {}): Promise<HostileScene> {
  const silent = () => undefined
  const home = await startTestService()
  const away = await startTestService(options)
  const stranger = makeStranger(home)
  const victim = await createData(away)
  await victim.create({ name: 'private', primary_column: 'id' })
  await victim.store('private', [{ id: 'a', word: 'hidden' }])
  return {
    ...{ home, away, victim, stranger },
    importInto: (hostile) =>
      away.whileStopped((config) => importApplication(config, hostile, silent)),
    expectRefusals: (exports, words) =>
      away.whileStopped(async (config) => {
        for (const [what, hostile] of exports)
          await expect(importApplication(config, hostile, silent), what).rejects.toThrow(words)
      }),
    close: async () => {
      await home.close()
      await away.close()
      stranger.close()
    },
  }
}
