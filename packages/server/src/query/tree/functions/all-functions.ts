import type { FunctionDefinition } from './function-definition.ts'
import { jsonFunctions } from './json.ts'
import { choosingFunctions, numberFunctions, numberOperators } from './number.ts'
import { textFunctions } from './text.ts'
import { timeFunctions } from './time.ts'
import { vectorFunctions, vectorOperators } from './vector.ts'

/** Every scalar function that SQL may use, by its lower-case name. The documentation is made from it. */
export const functions: ReadonlyMap<string, FunctionDefinition> = new Map(
  Object.entries({
    ...textFunctions,
    ...numberFunctions,
    ...choosingFunctions,
    ...timeFunctions,
    ...jsonFunctions,
    ...vectorFunctions,
  }),
)

/** The functions that operators stand for, by the operators' signs. */
export const functionOperators: ReadonlyMap<string, string> = new Map([
  ...numberOperators,
  ...vectorOperators,
])
