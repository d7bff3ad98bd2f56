import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Machine;
import software.amazon.event.ruler.MachineComplexityEvaluator;

/**
 * What event-ruler makes of a pattern. A line of standard input is {"pattern": text, "events":
 * [text, ...]}, a line of output "refused", or a 1 for each event that matches and a 0 for others.
 * With "complexity": number, it is the complexity of the pattern, up to that number.
 */
public final class Judge {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            Machine machine = new Machine();
            try {
                machine.addRule("rule", asked.get("pattern").asText());
            } catch (Exception problem) {
                out.println("refused");
                continue;
            }
            if (asked.has("complexity")) {
                out.println(machine.evaluateComplexity(
                        new MachineComplexityEvaluator(asked.get("complexity").asInt())));
                continue;
            }
            StringBuilder found = new StringBuilder();
            for (JsonNode event : asked.get("events")) {
                found.append(machine.rulesForJSONEvent(event.asText()).isEmpty() ? '0' : '1');
            }
            out.println(found);
        }
        out.flush();
    }
}
