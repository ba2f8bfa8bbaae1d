"""What operators ask about the state of clusters: explain, who, audit and the topology page. Decides no answer."""
