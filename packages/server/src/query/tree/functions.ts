import type { FunctionDefinition } from './function-definition.ts'
import { jsonFunctions } from './json-functions.ts'
import { choosingFunctions, numberFunctions } from './number-functions.ts'
import { textFunctions } from './text-functions.ts'
import { timeFunctions } from './time-functions.ts'
import { vectorFunctions } from './vector-functions.ts'

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
