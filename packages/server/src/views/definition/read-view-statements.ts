import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { readSource, type SourceText } from '../../query/sql/source-text.ts'
import { printWithModels } from './print-definition.ts'
import type { ViewDefinition } from './view-definition.ts'

type Options = {
  /** The member of the request in which the caller sent the models, for errors. */
  readonly pointer: string
  /** The view that is being defined. */
  readonly self?: string | undefined
  readonly viewOf?: ((model: string) => ViewDefinition | undefined) | undefined
}

/**
 * Reads the statements of the views among the models, and of those that these read; throws a 400 if one would read
 * itself.
 */
export async function readViewStatements(
  models: readonly string[],
  { pointer, self, viewOf }: Options,
): Promise<ReadonlyMap<string, SourceText>> {
  const found = new Map<string, SourceText>()
  const visit = async (model: string, path: readonly string[]): Promise<void> => {
    if (path.includes(model)) throw cycle(pointer, [...path, model])
    const definition = found.has(model) ? undefined : viewOf?.(model)
    if (definition === undefined) return
    const at = [...path, model]
    if (at.length > limits.viewDepthMax + (self === undefined ? 0 : 1))
      throw makeInvalidFault(
        pointer,
        `reads a view over more than ${limits.viewDepthMax - 1} others`,
      )
    const { text, models: inner } = printWithModels(definition)
    for (const each of inner) await visit(each, at)
    found.set(model, await readStatement(model, text))
  }
  for (const model of models) await visit(model, self === undefined ? [] : [self])
  return found
}

function cycle(pointer: string, path: readonly string[]): Fault {
  return new Fault('VALIDATION_FAILED', {
    message: `${pointer} makes a view read itself: ${path.join(' → ')}`,
    details: { field: pointer, problem: 'makes a view read itself', cycle: path },
  })
}

/** Reads a view's statement; a fault in it has no place in the text that the caller sent. */
async function readStatement(model: string, text: string): Promise<SourceText> {
  const source = await readSource(text)
  return {
    ...source,
    refuse: (_location, problem) =>
      makeInvalidFault('/sql', `has ${problem}, in the view ${model}`),
  }
}
