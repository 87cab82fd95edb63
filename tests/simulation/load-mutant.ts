import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundleWith } from '@tollbase/testing/bundle'
import type { Mutant } from './mutant.ts'
import type { Place, Result } from './place.ts'

type Run = (seed: string, place: Place, subject?: string) => Promise<Result>

const sources = join(import.meta.dirname, '../../packages/server/src')

/** Loads the simulation and the service once more, as one file, with the mutant in it. */
export async function loadMutant(mutant: Mutant): Promise<Run> {
  const path = join(sources, mutant.file)
  const planted = plant(mutant, readFileSync(path, 'utf8'))
  const file = await bundleWith(`tests/simulation/run-${mutant.scene}.ts`, [
    {
      name: mutant.name,
      setup: ({ onLoad }) => {
        onLoad({ filter: /\.ts$/ }, (loaded) =>
          loaded.path === path ? { contents: planted, loader: 'ts' } : undefined,
        )
      },
    },
  ])
  const module = await import(/* @vite-ignore */ pathToFileURL(file).href)
  return mutant.scene === 'market' ? module.runMarket : module.runLog
}

/** Returns the source with the mutant in it; throws where the mutant's text is not there, or more than once. */
function plant({ name, file, find, put }: Mutant, code: string): string {
  const parts = code.split(find)
  if (parts.length !== 2)
    throw new Error(`mutant ${name}: its text is ${parts.length - 1} times in ${file}`)
  return parts.join(put)
}
