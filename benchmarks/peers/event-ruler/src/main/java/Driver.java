import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import software.amazon.event.ruler.Machine;

/** event-ruler: a rule per filter, one event at a time from JSON text. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        boolean structured = args[0].equals("structured");
        List<String> filters = Files.readAllLines(Path.of(args[1]));
        String[] events = Files.readAllLines(Path.of(args[2])).toArray(new String[0]);
        double warmUp = Double.parseDouble(args[3]);
        double limit = Double.parseDouble(args[4]);

        long start = System.nanoTime();
        Machine machine = (Machine) Machine.builder().withStructuredMatching(structured).build();
        for (String line : filters) {
            JsonNode filter = JSON.readTree(line);
            machine.addRule(filter.get("id").asText(), rule(filter.get("tests")));
        }
        double buildSeconds = (System.nanoTime() - start) / 1e9;

        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        while (orders.readLine() != null) {
            warmUp(machine, events, warmUp);
            ObjectNode answer = JSON.createObjectNode();
            answer.put("system", structured ? "event-ruler structured" : "event-ruler");
            answer.put("version", version());
            answer.put("filters", filters.size());
            answer.put("build_seconds", buildSeconds);
            measure(machine, events, limit, answer);
            System.out.println(answer);
        }
    }

    /** A rule in event-ruler's language: {"a": ["text"], "b": [{"numeric": [">=", 1, "<=", 5]}]}. */
    private static String rule(JsonNode tests) {
        ObjectNode rule = JSON.createObjectNode();
        for (JsonNode test : tests) {
            ArrayNode any = rule.putArray(test.get("attribute").asText());
            JsonNode value = test.get("value");
            switch (test.get("op").asText()) {
                case "=" -> {
                    if (value.isTextual()) {
                        any.add(value);
                    } else {
                        any.addObject().putArray("numeric").add("=").add(value);
                    }
                }
                case "between" -> {
                    ArrayNode range = any.addObject().putArray("numeric");
                    if (test.has("low") && test.get("low").equals(test.get("high"))) {
                        range.add("=").add(test.get("low")); // a range of one is refused
                        continue;
                    }
                    if (test.has("low")) {
                        range.add(">=").add(test.get("low"));
                    }
                    if (test.has("high")) {
                        range.add("<=").add(test.get("high"));
                    }
                }
                case "prefix", "suffix" -> any.addObject().set(test.get("op").asText(), value);
                case "like" -> any.addObject().put("wildcard", value.asText().replace('%', '*'));
                default -> throw new IllegalArgumentException(test.toString());
            }
        }
        return rule.toString();
    }

    private static void warmUp(Machine machine, String[] events, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        for (String event : events) {
            if (System.nanoTime() > end) {
                return;
            }
            machine.rulesForJSONEvent(event);
        }
    }

    private static void measure(Machine machine, String[] events, double limit, ObjectNode answer)
            throws Exception {
        long[] spent = new long[events.length];
        int done = 0;
        long matches = 0;
        long start = System.nanoTime();
        long end = start + (long) (limit * 1e9);
        for (String event : events) {
            long begun = System.nanoTime();
            if (begun > end) {
                break;
            }
            matches += machine.rulesForJSONEvent(event).size();
            spent[done++] = System.nanoTime() - begun;
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        Arrays.sort(spent, 0, done);
        answer.put("events", done);
        answer.put("matches", matches);
        answer.put("seconds", seconds);
        answer.put("us_per_event", seconds * 1e6 / done);
        answer.put("p50_us", spent[done / 2] / 1e3);
        answer.put("p99_us", spent[(int) (done * 99L / 100)] / 1e3);
    }

    private static String version() throws IOException {
        String file = "/META-INF/maven/software.amazon.event.ruler/event-ruler/pom.properties";
        try (InputStream stream = Machine.class.getResourceAsStream(file)) {
            Properties properties = new Properties();
            properties.load(stream);
            return properties.getProperty("version");
        }
    }
}
