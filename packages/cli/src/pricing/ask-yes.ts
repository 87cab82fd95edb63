import { createInterface } from 'node:readline/promises'

/** Asks at the terminal; false where nobody is there to answer. */
export async function askYes(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${question} Type yes: `)
    return answer.trim() === 'yes'
  } finally {
    terminal.close()
  }
}
