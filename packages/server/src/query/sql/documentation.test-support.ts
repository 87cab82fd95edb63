import { aggregates, windowFunctions } from '../tree/aggregates.ts'
import { functions } from '../tree/functions/all-functions.ts'
import { listRowFunctions } from '../tree/functions/row.ts'
import { units } from '../tree/functions/time.ts'
import { timeFunctions } from './read-call.ts'
import { castTypes } from './read-cast.ts'

/** The part of docs/sql-reference.md that lists what SQL may call; made from the lists that the reader goes by. */
export function formatFunctionList(): string {
  const line = (title: string, names: Iterable<string>) =>
    `- ${title}: ${[...new Set(names)].map((name) => `\`${name}\``).join(', ')}`
  const times = [...timeFunctions.keys()].map((name) => name.replace('SVFOP_', '').toLowerCase())
  return [
    line('Functions', functions.keys()),
    line('The time of the statement', times),
    line('Units of `date_trunc`, `date_part` and `extract`', units),
    line('Aggregates', aggregates.keys()),
    line('Window functions, beside the aggregates', windowFunctions.keys()),
    line('Functions in FROM', listRowFunctions()),
    line('Types of casts', castTypes.keys()),
  ].join('\n')
}
